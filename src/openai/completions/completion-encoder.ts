import { type Dialect, inDialect } from '#wire';
import { type ChatEnd, faultOf, hasFailed, type WireEncoder } from '../translated/wire-encoder.ts';

interface CompletionEncoderOptions {
  readonly id: string;
  /** Epoch seconds. */
  readonly created: number;
  /** The model as the client named it. */
  readonly model: string;
  readonly dialect: Dialect;
  /** Whether the client asked for the usage of a stream. */
  readonly asksUsage: boolean;
}

/**
 * Writes a chat reply as a completion of OpenAI's older API. That API has only text, so thinking and tool calls are
 * left out.
 */
export function createCompletionEncoder({
  id,
  created,
  model,
  dialect,
  asksUsage,
}: CompletionEncoderOptions): WireEncoder {
  const base = { id, object: 'text_completion', created, model };
  const head = `data: ${JSON.stringify(base).slice(0, -1)},"choices":[{"index":0,"text":"`;
  const tail = '","logprobs":null,"finish_reason":null}]}\n\n';
  const failure = (end: ChatEnd) => ({ error: { ...inDialect(faultOf(end), dialect), param: null } });
  let out = '';

  return {
    begin() {},
    text: (run) => void (out += head + run.join(tail + head) + tail),
    thinking() {},
    call() {},
    arguments() {},
    ping: () => void (out += ': keep-alive\n\n'),
    end(end) {
      if (hasFailed(end)) {
        // Some clients recognise an error only by the first member of its event.
        out += eventOf({ ...failure(end), ...base, choices: [choiceOf('', 'error')] });
        return;
      }
      const { usage, ...more } = moreOf(end);
      const last = { ...base, choices: [choiceOf('', end.finish)], ...more };
      if (dialect === 'own') out += eventOf({ ...last, usage });
      else out += eventOf(last) + (asksUsage ? eventOf({ ...base, choices: [], usage }) : '');
      out += 'data: [DONE]\n\n';
    },
    failNative: (fault) => void (out += eventOf({ error: inDialect(fault, dialect), ...base })),
    take() {
      const taken = out;
      out = '';
      return taken;
    },
    whole({ text }, end) {
      if (hasFailed(end)) return { status: 500, body: failure(end) };
      return { status: 200, body: { ...base, choices: [choiceOf(text, end.finish)], ...moreOf(end) } };
    },
  };
}

const eventOf = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;
const choiceOf = (text: string, finish: string | null) => ({ index: 0, text, logprobs: null, finish_reason: finish });

/** The usage, the task of an agent, and why a reply was cut. */
function moreOf({ usage, tollgate, fault }: ChatEnd) {
  const note = fault === null ? {} : { note: fault };
  const told = tollgate === undefined && fault === null ? {} : { tollgate: { ...(tollgate as object), ...note } };
  return { usage, ...told };
}
