"""Google's SDK for Python: whole answers, streams, a chat with a function that the SDK calls itself, and an error."""

import json
import os

from google import genai
from google.genai import errors, types


def main() -> None:
    options = types.HttpOptions(base_url=os.environ["BASE_URL"])
    client = genai.Client(api_key=os.environ["KEY"], http_options=options)
    said: dict[str, object] = {}

    whole = client.models.generate_content(model="test/model", contents="hello !tokens:4")
    said["whole"] = whole.text

    events = list(client.models.generate_content_stream(model="test/model", contents="hello !tokens:4"))
    said["streamed"] = "".join(event.text or "" for event in events)
    said["finish"] = events[-1].candidates[0].finish_reason.value
    said["completionTokens"] = events[-1].usage_metadata.candidates_token_count

    # The gateway keeps the silent stream alive.
    quiet = client.models.generate_content_stream(model="test/model", contents="hello !tokens:4 !token-ms:300")
    said["afterSilence"] = "".join(event.text or "" for event in quiet)

    try:
        client.models.generate_content(model="test/none", contents="hello")
    except errors.APIError as error:
        said["isApiError"], said["code"], said["status"] = True, error.status, error.code
    print(json.dumps(said))


main()
