"""The network as servers feel it: links, listening sockets, connections (Linux: net/)."""
