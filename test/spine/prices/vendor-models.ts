import { modelBlock } from '../../support/spine.ts';

/* Public prices of the autumn of 2026. The thresholds are lower, so that a prompt of a few kilobytes reaches them. */
export const GPT = 'acme/gpt';
export const CLAUDE = 'acme/claude';
export const GEMINI = 'acme/gemini';
export const AUDIO = 'acme/audio';
/** Tokens of the longest prompt of the first tier. */
export const LONG = 2_000;
/** The models of the cases, at this address. */
export const blocks = (url: string) =>
  [
    {
      name: GPT,
      prompt: 5,
      completion: 30,
      pricing: `
input_cache_read = 0.5
web_search = 0.01
tiers = [{ above = ${LONG}, prompt = 10, completion = 45, input_cache_read = 1 }]
[models.pricing.service_tiers]
flex = { prompt = 2.5, completion = 15, input_cache_read = 0.25, tiers = [{ above = ${LONG}, prompt = 5, completion = 22.5, input_cache_read = 0.5 }] }
priority = { prompt = 12.5, completion = 75, input_cache_read = 1.25 }
batch = { prompt = 2.5, completion = 15, input_cache_read = 0.25 }`,
      params: 'wires = ["responses"]',
    },
    {
      name: CLAUDE,
      prompt: 3,
      completion: 15,
      pricing: `
input_cache_read = 0.3
input_cache_write = 3.75
input_cache_write_1h = 6
web_search = 0.01
tiers = [{ above = ${LONG}, prompt = 6, completion = 22.5, input_cache_read = 0.6, input_cache_write = 7.5, input_cache_write_1h = 12 }]`,
      params: 'wires = ["messages"]\nsearches_max = 4',
    },
    {
      name: GEMINI,
      prompt: 1.25,
      completion: 10,
      pricing: `
input_cache_read = 0.125
internal_reasoning = 12
image_output = 30
web_search = 0.014
tiers = [{ above = ${LONG}, prompt = 2.5, completion = 15, input_cache_read = 0.25 }]`,
    },
    {
      name: AUDIO,
      prompt: 4,
      completion: 16,
      pricing: 'input_cache_read = 0.4\naudio = 32\ninput_audio_cache = 0.8\naudio_output = 64',
    },
  ]
    .map((block) => modelBlock({ ...block, provider: 'Acme', url }))
    .join('')
    .replace(
      `name = "${AUDIO}"`,
      `name = "${AUDIO}"\ninput_modalities = ["text", "audio"]\noutput_modalities = ["text", "audio"]`,
    );
