"""Webhooks built on Celery: a task for each event creates a task for each webhook, which posts a signed request.

The environment variable PLAN is the plan as JSON. The tasks of a killed worker are requeued; results are stored.
`python celery_app.py` adds events after the first line of input and prints `done` when all results are stored.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time

import redis
import urllib3
from celery import Celery
from celery.signals import worker_ready

PLAN = json.loads(os.environ["PLAN"])
KEY = base64.b64decode(PLAN["secret"].removeprefix("whsec_"))
BROKER, RESULTS = 0, 1
_POOL = urllib3.PoolManager(maxsize=PLAN["atOnce"])


def _address(database):
    return f"redis+socket://{PLAN['socket']}?virtual_host={database}"


app = Celery("celery_app", broker=_address(BROKER), backend=_address(RESULTS))
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=16,
    result_expires=86_400,
    broker_connection_retry_on_startup=True,
    worker_redirect_stdouts=False,
)


@worker_ready.connect
def print_ready(**_):
    print("ready", flush=True)


@app.task(ignore_result=True)
def event(number, body):
    with app.producer_pool.acquire(block=True) as producer:
        for webhook in range(PLAN["webhooks"]):
            deliver.apply_async((f"{number}-{webhook}", body), producer=producer)


@app.task(autoretry_for=(OSError, urllib3.exceptions.HTTPError), retry_backoff=5, max_retries=12)
def deliver(delivery_id, body):
    timestamp, content = str(int(time.time())), body.encode()
    signed = f"{delivery_id}.{timestamp}.".encode() + content
    signature = base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
    headers = {
        "Content-Type": "application/json",
        "X-Webhook-Secret": PLAN["secret"],
        "webhook-id": delivery_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }
    response = _POOL.request("POST", PLAN["url"], body=content, headers=headers, timeout=15, retries=False)
    if response.status >= 300:
        raise OSError(f"status {response.status}")
    return response.status


def commit():
    results = redis.Redis(unix_socket_path=PLAN["socket"], db=RESULTS)
    expected = results.dbsize() + PLAN["events"] * PLAN["webhooks"]
    print("ready", flush=True)
    sys.stdin.readline()
    with app.producer_pool.acquire(block=True) as producer:
        for number in range(PLAN["events"]):
            event.apply_async((number, PLAN["body"]), producer=producer)
    while results.dbsize() < expected:
        time.sleep(0.01)
    print("done", flush=True)


if __name__ == "__main__":
    commit()
