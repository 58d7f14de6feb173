import { connect } from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { modelBlock, startSpine, UNHURRIED, type Spine, type SpineOptions } from '../../../support/spine.ts';
import { startRealtimeProvider, type RealtimeProvider } from './realtime-provider.ts';

/** A gateway with one realtime model, `voice`, and its provider. Prices in micro-USD a token: 4 in, 16 out. */
export interface VoiceGateway {
  readonly provider: RealtimeProvider;
  readonly spine: Spine;
  /** `ws://…/v1/realtime?model=voice`. */
  readonly url: string;
  /** A session of the official SDK. */
  sdk(key?: string): OpenAIRealtimeWS;
  stop(): Promise<void>;
}

/** Sound costs 32 in and 64 out, and what a cache had 0.4. */
const PRICING = 'input_cache_read = 0.4\naudio = 32\ninput_audio_cache = 0.4\naudio_output = 64';

/** The block of the model at the address of a provider. */
export const voiceBlock = (url: string, params = ''): string =>
  modelBlock({
    name: 'voice',
    provider: 'Voices',
    url,
    prompt: 4,
    completion: 16,
    contextLength: 32_000,
    maxOutputTokens: 4_096,
    pricing: PRICING,
    params: `wires = ["realtime"]\n${params}`,
  }).replace(
    'max_output_tokens',
    'input_modalities = ["text", "audio", "image"]\noutput_modalities = ["text", "audio"]\nmax_output_tokens',
  );

/** `params`: additional lines of `[models.params]`. */
export async function startVoiceGateway({
  params = '',
  ...options
}: SpineOptions & { readonly params?: string } = {}): Promise<VoiceGateway> {
  const provider = await startRealtimeProvider();
  const block = voiceBlock(provider.url, params);
  const spine = await startSpine({ ...options, toml: (options.toml ?? UNHURRIED) + block });
  const { host, port, hostname } = new URL(spine.origin);
  return {
    provider,
    spine,
    url: `ws://${host}/v1/realtime?model=voice`,
    sdk(key = spine.key) {
      const client = new OpenAI({ apiKey: key, baseURL: `https://${host}/v1` });
      // The SDK opens wss alone, and the gateway of the test has no certificate.
      return new OpenAIRealtimeWS(
        { model: 'voice', options: { createConnection: () => connect(Number(port), hostname) } },
        client,
      );
    },
    async stop() {
      await spine.stop();
      await provider.stop();
    },
  };
}
