import { NATIVE_PEER, PEER } from './routes.ts';
import type { PeerProvider } from './peer-provider.ts';

/** Blocks of the configuration for all primitives of a peer provider, at one micro-USD a reported token. */
export const peerServices = ({
  modelUrl,
  toolUrl,
  agentUrl,
}: Pick<PeerProvider, 'modelUrl' | 'toolUrl' | 'agentUrl'>) => `
[[models]]
name = "${PEER}"
display_name = "Peer: All"
provider_name = "Peer"
context_length = 100000
max_output_tokens = 5000
[models.pricing]
prompt = 0
completion = 1
[models.params]
model = "peer"
api_base = "${modelUrl}"
api_key = "k"

[[models]]
name = "${NATIVE_PEER}"
display_name = "Peer: Native"
provider_name = "Peer"
context_length = 100000
max_output_tokens = 5000
[models.pricing]
prompt = 0
completion = 1
[models.params]
model = "peer"
wires = ["messages", "responses", "gemini"]
api_base = "${modelUrl}"
api_key = "k"

[[images]]
name = "${PEER}"
display_name = "Peer: All"
provider_name = "Peer"
[images.pricing]
generation = 0.001
[images.params]
model = "peer"
edits = true
body = "json"
api_base = "${modelUrl}"

[[videos]]
name = "${PEER}"
display_name = "Peer: All"
provider_name = "Peer"
durations = ["5s"]
[videos.pricing]
per_second = { "720p" = 0.001 }
[videos.params]
model = "peer"
api_base = "${modelUrl}"

[media]
free_bytes_min = 0
file_bytes_max = 65536

[[tools]]
name = "${PEER}"
display_name = "Peer: All"
provider_name = "Peer"
endpoint = "${toolUrl}"
[tools.pricing]
per_call = 0
completion = 1
per_call_max = 0.005

[[agents]]
name = "${PEER}"
display_name = "Peer: All"
provider_name = "Peer"
endpoint = "${agentUrl}"
[agents.pricing]
completion = 1
per_call_max = 0.005
`;
