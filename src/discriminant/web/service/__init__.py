"""The scoring service: models over HTTP, in the formats of several protocols."""
