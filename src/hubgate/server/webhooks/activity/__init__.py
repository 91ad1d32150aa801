"""The delivery log of a webhook, replays and test deliveries."""
