import { GatewayError } from '#errors';
import { LargeStrings } from '#wire';
import { toHttpError } from '#http';
import type { Frame, SettledFrame } from '#billing/amounts';
import type { Call } from '#call';
import {
  type CallEvent,
  type ContentResult,
  contentResultOf,
  type EventBatch,
  eventBatch,
  largePart,
  type Part,
  partOf,
  textDelta,
} from '#bridge';
import type { Provider } from '#catalog';
import type { ChatResult } from '../chat/reply/chat-end.ts';
import { imageOf } from '../chat/reply/chat-encoder.ts';
import type { ReplyAbout } from '../chat/reply/chat-reply.ts';

interface ChatFramesOptions {
  readonly call: Call;
  readonly about: ReplyAbout;
  readonly replyBytesMax: number;
  /** The provider that serves. Before it is known, the first candidate's. */
  readonly provider: () => Provider;
}

/**
 * Turns the frames of a call of a tool or an agent into those of a chat model: its parts become texts, and a ChatResult
 * ends them.
 */
export async function* chatFrames(
  frames: AsyncIterable<Frame<ContentResult, EventBatch>>,
  { call, about, replyBytesMax, provider }: ChatFramesOptions,
): AsyncGenerator<Frame<ChatResult, EventBatch>> {
  const text = createPartsText();
  const texts: string[] = [];
  const images: object[] = [];
  const videos: object[] = [];
  let length = 0;
  let begun = false;
  const chunk = (delta: Readonly<Record<string, unknown>>) => ({
    id: call.id,
    object: 'chat.completion.chunk',
    created: Math.floor(about.startedAt / 1000),
    model: about.model,
    provider: provider().name,
    choices: [{ index: 0, delta, finish_reason: null as string | null }],
  });
  const raw = (delta: Readonly<Record<string, unknown>>): CallEvent => ({ type: 'raw', chunk: chunk(delta) });

  for await (const frame of frames) {
    if (frame.type === 'head' || frame.type === 'end') continue;
    if (!begun) {
      begun = true;
      yield { type: 'head', status: 200, provider: provider() };
      if (about.stream) yield { type: 'data', data: eventBatch([raw({ role: 'assistant', content: '' })])! };
    }
    if (frame.type === 'settled') {
      const { files = [] } = contentResultOf(frame);
      const large = new LargeStrings();
      for (const file of files) {
        const image = imageOf(largePart(file, large))!;
        if (!about.stream) images.push(image);
        else
          yield {
            type: 'data',
            data: { events: [raw({ images: [image] })], byteLength: file.base64.byteLength, large },
          };
      }
      const why = length > replyBytesMax ? `The reply was cut: it is longer than ${replyBytesMax} characters` : null;
      const settled = toSettled(frame, about, chunk({}), messageOf(texts.join(''), images, videos), why);
      yield files.length === 0 ? settled : { ...settled, result: { ...settled.result!, large } };
      return;
    }
    const events: CallEvent[] = [];
    for (const event of frame.data.events) {
      if (event.type === 'progress') {
        events.push(event);
        continue;
      }
      const part = partOf(event);
      if (part === null) continue;
      const video = call.primitive === 'video' ? videoOf(part) : null;
      if (video !== null) videos.push(video);
      const piece = text.push(part);
      length += piece.length;
      // The rest is left out. The call still runs to its end, which decides the charge.
      if (length > replyBytesMax) continue;
      // A text without a separator before it passes as it came.
      if (!about.stream) texts.push(piece);
      else if (video !== null) events.push(raw({ content: piece, videos: [video] }));
      else
        events.push(
          event.type === 'text-delta' && part.kind === 'text' && piece === part.text ? event : textDelta(piece),
        );
    }
    const batch = about.stream ? eventBatch(events, frame.data.byteLength) : null;
    if (batch !== null) yield { type: 'data', data: batch };
  }
}

/** The text has a link to the video as well, because most clients show nothing else. */
const videoOf = (part: Part) =>
  part.kind === 'file' && part.url !== null ? { type: 'video_url', video_url: { url: part.url } } : null;

const messageOf = (content: string, images: readonly object[], videos: readonly object[]) => ({
  role: 'assistant',
  content,
  ...(images.length === 0 ? {} : { images }),
  ...(videos.length === 0 ? {} : { videos }),
});

const FINISH = {
  stop: 'stop',
  length: 'length',
  input: 'stop',
  cut: 'length',
  failed: 'error',
  later: 'stop',
} as const satisfies Record<ContentResult['finish'], string>;
const STATE = {
  stop: 'completed',
  length: 'completed',
  input: 'input-required',
  cut: 'canceled',
  failed: 'failed',
  later: 'working',
} as const satisfies Record<ContentResult['finish'], string>;

/** `tooLong`: why a part of the reply was left out; null if all of it was given out. */
function toSettled(
  frame: SettledFrame<ContentResult>,
  about: ReplyAbout,
  chunk: Record<string, unknown>,
  message: object,
  tooLong: string | null,
): SettledFrame<ChatResult> {
  const end = contentResultOf(frame);
  const { taskId, contextId, promptTokens, completionTokens } = end;
  const finish_reason = FINISH[end.finish];
  const body: Record<string, unknown> = about.stream
    ? { ...chunk, choices: [{ index: 0, delta: {}, finish_reason }] }
    : {
        ...chunk,
        object: 'chat.completion',
        system_fingerprint: null,
        choices: [{ index: 0, message, finish_reason }],
      };
  if (end.finish === 'failed') {
    const message = `${about.model} failed: ${end.error ?? 'no reason given'}`;
    body['error'] = toHttpError(new GatewayError(end.errorCode ?? 'provider_unavailable', message)).body.error;
  }
  // A task that waits for input, or goes on, is charged when it ends.
  const pending = end.finish === 'input' || end.finish === 'later' ? { cost_pending: true } : {};
  if (taskId !== null || contextId !== null)
    body['tollgate'] = { task_id: taskId, context_id: contextId, state: STATE[end.finish], ...pending };
  const result: ChatResult = {
    before: null,
    body,
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
  };
  const why = end.finish === 'cut' ? (end.error ?? 'The reply was cut') : end.finish === 'failed' ? null : tooLong;
  return { ...frame, result: why === null ? result : { ...result, cut: new GatewayError('reply_cut', why) } };
}

interface PartsText {
  /** Returns the next piece: the part, with its separator before it. */
  push(part: Part): string;
}

/**
 * Consecutive texts become one text. A file becomes an image or a link, and data becomes a block of JSON; each of
 * these is a separate paragraph.
 */
function createPartsText(): PartsText {
  let before: Part['kind'] | null = null;
  return {
    push(part) {
      const gap = before === null || (before === 'text' && part.kind === 'text') ? '' : '\n\n';
      before = part.kind;
      return gap + markdownOf(part);
    },
  };
}

function markdownOf(part: Part): string {
  switch (part.kind) {
    case 'text':
      return part.text;
    case 'data':
      // No line can end the block, because line ends in strings are escaped, and the rest has no backticks.
      return `\`\`\`json\n${JSON.stringify(part.data, null, 2) ?? 'null'}\n\`\`\``;
    case 'file': {
      const { mediaType, name, url, bytes } = part;
      const image = mediaType?.startsWith('image/') ?? false;
      // Only a web address becomes a link. Any other address is shown as text, so that nobody follows it.
      if (url !== null && !/^https?:/i.test(url)) return `${labelOf(name ?? 'file')} (${labelOf(url)})`;
      const target = url === null ? `data:${mediaType ?? 'application/octet-stream'};base64,${bytes ?? ''}` : url;
      return `${image ? '!' : ''}[${labelOf(name ?? (image ? 'image' : 'file'))}](${targetOf(target)})`;
    }
  }
}

const LABEL_MAX = 200;

/** Escapes a name, because it comes from a stranger and must not close its brackets. */
const labelOf = (name: string) =>
  name
    .slice(0, LABEL_MAX)
    .replace(/[\s\p{C}]+/gu, ' ')
    .replace(/[\\[\]`<>]/g, '\\$&');

const targetOf = (url: string) =>
  url.replace(/[\s()<>\\]/g, (character) => encodeURIComponent(character).replace('(', '%28').replace(')', '%29'));
