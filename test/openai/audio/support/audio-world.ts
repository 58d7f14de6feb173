import OpenAI from 'openai';
import type { ModelKind } from '#config/model-kinds';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { type AudioUpstream, startAudio } from './audio-upstream.ts';

/** A gateway that offers models at the public prices of their vendors. */
export interface AudioWorld {
  readonly upstream: AudioUpstream;
  readonly spine: Spine;
  readonly client: OpenAI;
  stop(): Promise<void>;
}

/** `[[models]]` of a model for audio, or of another kind with a route of its own. */
export function audioBlock({
  name,
  output,
  pricing,
  url,
  params = '',
}: {
  readonly name: string;
  readonly output: ModelKind;
  readonly pricing: string;
  readonly url: string;
  readonly params?: string;
}): string {
  return `
[[models]]
name = "${name}"
provider_name = "Acme"
input_modalities = ["${output === 'transcription' ? 'audio' : 'text'}"]
output_modalities = ["${output}"]
pricing = { prompt = 0, completion = 0, ${pricing} }
params = { model = "of-${name}", api_base = "${url}", api_key = "k"${params} }
`;
}

export async function startAudioWorld(toml = ''): Promise<AudioWorld> {
  const upstream = await startAudio();
  const { url } = upstream;
  const spine = await startSpine({
    toml: [
      `${UNHURRIED}\n[upstream]\ncooldown_ms = 0\n`,
      audioBlock({ name: 'tts-1', output: 'speech', pricing: 'character = 15', url }),
      audioBlock({ name: 'gpt-4o-mini-tts', output: 'speech', pricing: '', url }).replace(
        'prompt = 0, completion = 0, ',
        'prompt = 0.60, completion = 12',
      ),
      audioBlock({ name: 'whisper-1', output: 'transcription', pricing: 'per_minute = 0.006', url }),
      audioBlock({ name: 'gpt-4o-transcribe', output: 'transcription', pricing: '', url }).replace(
        'prompt = 0, completion = 0, ',
        'prompt = 2.50, audio = 6, completion = 10',
      ),
      toml,
    ].join('\n'),
  });
  return {
    upstream,
    spine,
    client: new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 }),
    async stop() {
      await spine.stop();
      await upstream.stop();
    },
  };
}
