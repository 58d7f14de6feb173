import type { Answer, Step, TaskState } from './answer.ts';

/** The members of a streamed chat chunk that are shown. A stranger wrote everything in it. */
export interface Chunk {
  readonly id?: string;
  readonly provider?: string;
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: unknown;
      readonly reasoning?: unknown;
      readonly reasoning_content?: unknown;
      readonly images?: readonly { readonly image_url?: { readonly url?: unknown } }[];
    };
    readonly finish_reason?: string | null;
  }[];
  readonly error?: { readonly message: string; readonly type?: string; readonly code?: number | string };
  readonly tollgate?: {
    readonly tool_calls?: readonly {
      readonly id: string;
      readonly service: string;
      readonly tool: string;
      readonly state: Step['state'];
      readonly generation: string | null;
    }[];
    readonly task_id?: string | null;
    readonly context_id?: string | null;
    readonly state?: TaskState;
    readonly note?: string;
  };
  readonly usage?: {
    readonly total_tokens?: number;
    readonly cost?: number;
  };
}

const STEPS_MAX = 200;
/** A file of a tool or an agent, inline as a data URL. It doesn't count as text. */
const FILE = /^\s*!?\[[^\]]{0,500}\]\(data:/;
const IMAGES_MAX = 16;
const PICTURE = /^data:image\/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/=]+$/;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Returns the answer with the content of a chunk added. With `parts`, each piece of text is a part of its own. */
// oxlint-disable-next-line complexity -- each branch is one kind of member of a chunk
export function reduceChunk(answer: Answer, chunk: Chunk, parts: boolean): Answer {
  const choice = chunk.choices?.[0];
  const piece = text(choice?.delta?.content);
  const thought = text(choice?.delta?.reasoning) || text(choice?.delta?.reasoning_content);
  const images = (choice?.delta?.images ?? [])
    .map(({ image_url: image }) => text(image?.url))
    .filter((url) => PICTURE.test(url));
  const { tollgate, usage, error } = chunk;
  let next: Answer = {
    ...answer,
    callId: answer.callId ?? chunk.id ?? null,
    provider: chunk.provider ?? answer.provider,
  };
  if (piece !== '' || thought !== '' || images.length > 0)
    next = {
      ...next,
      firstAt: answer.firstAt ?? Date.now(),
      pieces: putPiece(answer.pieces, piece, parts),
      length: answer.length + (parts && FILE.test(piece) ? 0 : piece.length),
      thinking: answer.thinking + thought,
      images: [...answer.images, ...images].slice(0, IMAGES_MAX),
    };
  for (const { id, service, tool, state, generation } of tollgate?.tool_calls ?? [])
    next = { ...next, steps: putStep(next.steps, { id, text: tool, service, state, callId: generation }) };
  if (tollgate?.state !== undefined)
    next = {
      ...next,
      task: { id: tollgate.task_id ?? null, context: tollgate.context_id ?? null, state: tollgate.state },
    };
  if (usage) next = { ...next, cost: usage.cost ?? null, tokens: usage.total_tokens ?? null };
  if (tollgate?.note !== undefined) next = { ...next, note: tollgate.note };
  else if (choice?.finish_reason === 'length') next = { ...next, note: 'The answer was cut at its longest length.' };
  if (error)
    next = {
      ...next,
      fault: {
        message: error.message,
        type: error.type ?? 'provider_error',
        status: Number(error.code) || 500,
        requestId: null,
      },
    };
  return next;
}

/** A new part begins with an empty line, except the first one. Any other text continues the last part. */
function putPiece(pieces: readonly string[], piece: string, parts: boolean): readonly string[] {
  const last = pieces.length - 1;
  if (piece === '') return pieces;
  return last >= 0 && !(parts && piece.startsWith('\n\n'))
    ? pieces.with(last, pieces[last]! + piece)
    : [...pieces, piece];
}

/** Adds a message of a tool or an agent about its work. Earlier messages are marked as done. */
export function takeComment(answer: Answer, said: string): Answer {
  if (said === '' || said === 'keep-alive') return answer;
  const before = answer.steps.map((step) =>
    step.service === null && step.state === 'running' ? { ...step, state: 'done' as const } : step,
  );
  if (before.at(-1)?.text === said) return answer;
  const id = `said-${answer.steps.length}`;
  return { ...answer, steps: putStep(before, { id, text: said, service: null, state: 'running', callId: null }) };
}

function putStep(steps: readonly Step[], step: Step): readonly Step[] {
  const at = steps.findIndex(({ id }) => id === step.id);
  if (at >= 0) return steps.with(at, step);
  return steps.length >= STEPS_MAX ? steps : [...steps, step];
}

/** Completes the answer after the last chunk. */
export const endAnswer = (answer: Answer, more: Partial<Answer> = {}): Answer => ({
  ...answer,
  running: false,
  endedAt: Date.now(),
  steps: answer.steps.map((step) => (step.state === 'running' ? { ...step, state: 'done' as const } : step)),
  ...more,
});
