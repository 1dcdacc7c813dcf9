# Two nodes are left for a read. A write has to meet any two of five: it needs four.
write, read = 4, 2
