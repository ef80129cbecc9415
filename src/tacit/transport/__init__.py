"""Carries frames between two machines: gRPC, mutual TLS 1.3, one named peer.

The only room that imports grpc. It knows neither roles nor messages.
"""
