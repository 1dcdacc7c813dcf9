"""The core of the protocol: what every configuration has. It knows no option, and no part."""
