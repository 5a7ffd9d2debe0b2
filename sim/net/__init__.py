"""The network as servers feel it: links, listening sockets, connections (Linux: net/).

Read sock.py (one end of a connection), then network.py (how connections come about).
"""

from sim.net.connection import Connection, ListeningSocket
from sim.net.link import Link, Wire
from sim.net.network import Network
from sim.net.remote import RemoteConnection, RemoteListener
from sim.net.tcp import (
    OUTSIDE_TCP,
    AddressInUse,
    ConnectionRefused,
    ConnectionTimedOut,
    NetworkError,
    TcpParams,
)
from sim.net.udp import Datagram, UdpSocket
from sim.net.unix import DatagramSocket

__all__ = [
    "OUTSIDE_TCP",
    "AddressInUse",
    "Connection",
    "ConnectionRefused",
    "ConnectionTimedOut",
    "Datagram",
    "DatagramSocket",
    "Link",
    "ListeningSocket",
    "Network",
    "NetworkError",
    "RemoteConnection",
    "RemoteListener",
    "TcpParams",
    "UdpSocket",
    "Wire",
]
