"""Carries frames between two machines: gRPC, mutual TLS 1.3, one named peer.

The only room that imports grpc. It knows neither roles nor messages.

TLS 1.3 only: gRPC for Python has no setting for the version. Its list of cipher suites, however,
governs TLS 1.2 and older alone; those of TLS 1.3 are always on. The list set here has one suite,
which authenticates by a pre-shared key. None is ever configured, so that no handshake of an older
version can be completed, by anybody, and TLS 1.3 is untouched. gRPC reads the list when it is first
imported, so it is set here, before any file of this room can import it. Where something else in the
process has imported gRPC earlier, the handshake of an older version succeeds, and the server
refuses the stream that comes over it (``grpc_channel.objection``).
"""

import os

# For the whole process, and those it starts: other users of gRPC there get TLS 1.3 only, too.
os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-PSK-CHACHA20-POLY1305"
