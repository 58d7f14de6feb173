import { png } from '../../media/support/image-provider.ts';
import { content, inOut, type Kind, KINDS, response, sse, typed } from './kinds.ts';

/* The kinds of calls of models whose replies are streams or are made in the background. */

const STREAM = 'text/event-stream';
type Json = Parameters<Kind['reply']>[1];
const kindOf = (name: string) => KINDS.find((kind) => kind.name === name)!;

const begun = { type: 'response.created', response: { ...response('', {}), status: 'in_progress' } };
const delta = (text: string) => ({
  type: 'response.output_text.delta',
  item_id: 'i',
  output_index: 0,
  content_index: 0,
  delta: text,
});
const done = (text: string, usage: Json) => ({ type: 'response.completed', response: response(text, usage) });

const IMAGE = png(64, 64).toString('base64');
const partial = { type: 'image_generation.partial_image', b64_json: IMAGE, partial_image_index: 0 };

const SOUND = { type: 'speech.audio.delta', audio: Buffer.alloc(900, 7).toString('base64') };

const { padded: _unused, ...responses } = kindOf('responses');
const { padded: _unread, ...gemini } = kindOf('gemini');
const { noTokens: _priced, ...speech } = kindOf('speech');

/** Of streams, which are not kept, only the parts that are not text are bounded. */
const RESPONSE_STREAM = {
  ...responses,
  type: STREAM,
  reply: (text, usage) => typed(begun, ...(text === '' ? [] : [delta(text)]), done(text, usage)),
  thinks: (usage) =>
    typed(
      begun,
      { type: 'response.reasoning_summary_text.delta', item_id: 'i', output_index: 0, summary_index: 0, delta: 'hm' },
      { type: 'response.incomplete', response: JSON.parse(responses.thinks!(usage)) as object },
    ),
  begin: (text) => typed(begun, delta(text)),
  end: (usage) => typed(done('hello to you', usage)),
} satisfies Partial<Kind>;

const STREAMED_KINDS: readonly Kind[] = [
  {
    ...RESPONSE_STREAM,
    name: 'responsestream',
    ask: (model, text) => ({
      path: '/api/v1/responses',
      body: { model, max_output_tokens: 200, input: text, store: false, stream: true },
    }),
  },
  {
    ...RESPONSE_STREAM,
    name: 'background',
    inBackground: true,
    ask: (model, text) => ({
      path: '/api/v1/responses',
      body: { model, max_output_tokens: 200, input: text, background: true },
    }),
  },
  {
    ...gemini,
    name: 'geministream',
    ask: (model, text) => ({
      path: `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
      body: { contents: [{ role: 'user', parts: [{ text }] }], generationConfig: { maxOutputTokens: 200 } },
    }),
    type: STREAM,
    reply: (text, usage) => sse({ ...content(text), ...usage }),
    thinks: (usage) => sse(JSON.parse(gemini.thinks!(usage)) as object),
    begin: (text) => sse({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }] }),
    end: (usage) => sse({ ...content(''), ...usage }),
  },
  {
    ...kindOf('image'),
    name: 'imagestream',
    beginsEmpty: true,
    lines: 'supported_params = ["stream"]',
    ask: (model, text) => ({
      path: '/api/v1/images/generations',
      body: { model, prompt: text, stream: true, partial_images: 1 },
    }),
    type: STREAM,
    reply: () => typed({ type: 'image_generation.completed', b64_json: IMAGE }),
    begin: () => typed(partial),
    end: () => typed({ type: 'image_generation.completed', b64_json: IMAGE }),
    padded: (padding) => typed({ type: 'image_generation.noted', padding }),
  },
  {
    ...speech,
    name: 'speechevents',
    pricing: '',
    ask: (model, text) => ({
      path: '/api/v1/audio/speech',
      body: { model, input: text, voice: 'v', response_format: 'opus', stream_format: 'sse' },
    }),
    type: STREAM,
    usage: inOut,
    reply: (_text, usage) => sse(SOUND, { type: 'speech.audio.done', ...usage }),
    begin: () => sse(SOUND),
    end: (usage) => sse({ type: 'speech.audio.done', ...usage }),
    worth: kindOf('chat').worth,
  },
];

/** All kinds of calls of models that are one HTTP request. */
export const ALL_KINDS: readonly Kind[] = [...KINDS, ...STREAMED_KINDS];
