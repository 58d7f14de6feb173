# The main calls by a client that openapi-python-client made. Prints what came back, as one line of JSON.
import io
import json
import os
import sys
import time

sys.path.insert(0, os.environ["CLIENT"])

from client import AuthenticatedClient
from client.api.account import create_a_key, delete_a_key, list_your_keys, show_the_key_in_use, show_your_balance
from client.api.chat import create_chat_completion, create_embeddings, create_message, create_response
from client.api.images import edit_images, generate_images
from client.api.models import list_models
from client.api.videos import fetch_video, queue_video, show_video
from client.models import (
    ChatCompletionRequest,
    ChatMessage,
    EditImagesFilesBody,
    EmbeddingsRequest,
    ImageRequest,
    MessageRequest,
    NewKeyRequest,
    ResponseRequest,
    VideoRequest,
)
from client.types import File



def client_with(key):
    return AuthenticatedClient(base_url=os.environ["ORIGIN"], token=key, timeout=60, raise_on_unexpected_status=True)


client = client_with(os.environ["KEY"])
said = {}

chat = create_chat_completion.sync(
    client=client,
    body=ChatCompletionRequest.from_dict(
        {"model": "demo/chat", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 40}
    ),
)
said["chat"] = chat.choices[0].message.content
said["prompt_tokens"] = chat.usage.prompt_tokens

message = ChatMessage.from_dict({"role": "user", "content": "Hello"})
wrong = create_chat_completion.sync(client=client, body=ChatCompletionRequest(model="none/such", messages=[message]))
said["error"] = wrong.error.type_

response = create_response.sync(client=client, body=ResponseRequest(model="demo/chat", input_="Hello"))
said["response"] = response.to_dict()["output"][0]["content"][0]["text"]

told = create_message.sync(
    client=client,
    body=MessageRequest.from_dict(
        {"model": "demo/chat", "max_tokens": 40, "messages": [{"role": "user", "content": "Hello"}]}
    ),
)
said["message"] = told.content[0].to_dict()["text"]

said["models"] = [one.id for one in list_models.sync(client=client).data]

vectors = create_embeddings.sync(client=client, body=EmbeddingsRequest(model="demo/embedding", input_="Hello"))
said["embedding"] = len(vectors.data[0].embedding)

painted = generate_images.sync(client=client, body=ImageRequest(model="demo/image", prompt="A bridge"))
said["image"] = painted.images[0].to_dict()["format"]

png = bytes.fromhex(os.environ["PNG"])
upload = File(payload=io.BytesIO(png), file_name="toll.png", mime_type="image/png")
edited = edit_images.sync(
    client=client, body=EditImagesFilesBody(model="demo/image", prompt="Lower the bar", image=[upload])
)
said["edited"] = edited.images[0].to_dict()["format"]

queued = queue_video.sync(client=client, body=VideoRequest(model="demo/video", prompt="A gate", duration="2s"))
for _ in range(600):
    video = show_video.sync(id=queued.id, client=client)
    if video.status in ("completed", "failed"):
        break
    time.sleep(0.1)
said["video"] = video.status
said["film"] = fetch_video.sync(id=queued.id, client=client).payload.read()[4:8].decode()

made = create_a_key.sync(client=client, body=NewKeyRequest(name="generated", limit=1))
said["key_works"] = show_the_key_in_use.sync(client=client_with(made.key)).data.label == "generated"
listed = [one.hash_ for one in list_your_keys.sync(client=client).data]
said["key_listed"] = made.data.hash_ in listed
said["key_deleted"] = delete_a_key.sync(hash_=made.data.hash_, client=client).data.deleted

said["balance"] = show_your_balance.sync(client=client).balance_usd
print(json.dumps(said))
