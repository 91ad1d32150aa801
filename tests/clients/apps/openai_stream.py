"""Streams a completion with the OpenAI SDK and prints each piece as it is received; a line of input allows the next."""

import os
import sys

from openai import OpenAI, PermissionDeniedError

headers = {"X-HF-Bill-To": os.environ["BILL_TO"]} if "BILL_TO" in os.environ else {}
client = OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], max_retries=0, default_headers=headers)
print("models:", *(model.id for model in client.models.list()), flush=True)
try:
    stream = client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "Count."}], stream=True)
except PermissionDeniedError as error:
    print("refused:", error.status_code, flush=True)
    sys.exit()
for event in stream:
    print("piece:", event.choices[0].delta.content, flush=True)
    sys.stdin.readline()
print("embedding:", client.embeddings.create(model="tiny", input="x", encoding_format="float").data[0].embedding)
