"""What a replica and its host exchange: messages, effects and what is durable, as plain values."""
