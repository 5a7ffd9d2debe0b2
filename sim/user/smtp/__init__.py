"""Mail by SMTP: the protocol, senders and the next host."""
