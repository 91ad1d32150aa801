"""Replays of many deliveries: durable, cancellable, with a rate. One delivery is replayed by `activity/replays.py`.

A request stores what to replay (`jobs.py`). The process that owns the webhook's shard queues a few copies at a time
(`runner.py`) and sends them no faster than the rate (`delivering/webhook_queue.py`).
"""
