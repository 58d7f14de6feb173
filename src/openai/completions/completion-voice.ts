import { type ChatEnd, faultOf, hasFailed, type Voice } from '../translated/voice.ts';

interface CompletionVoiceOptions {
  readonly id: string;
  /** Epoch seconds. */
  readonly created: number;
  /** The model as the client named it. */
  readonly model: string;
}

/**
 * Writes a chat reply as a completion of OpenAI's older API. That API has only text, so thinking and tool calls are
 * left out.
 */
export function createCompletionVoice({ id, created, model }: CompletionVoiceOptions): Voice {
  const base = { id, object: 'text_completion', created, model };
  const head = `data: ${JSON.stringify(base).slice(0, -1)},"choices":[{"index":0,"text":"`;
  const tail = '","logprobs":null,"finish_reason":null}]}\n\n';
  const failure = (end: ChatEnd) => ({ error: { ...faultOf(end), param: null } });
  let out = '';

  return {
    begin() {},
    text: (run) => void (out += head + run.join(tail + head) + tail),
    thinking() {},
    call() {},
    arguments() {},
    ping: () => void (out += ': keep-alive\n\n'),
    end(end) {
      const ended = hasFailed(end)
        ? { ...base, choices: [choiceOf('', 'error')], ...failure(end) }
        : { ...base, choices: [choiceOf('', end.finish)], ...moreOf(end) };
      out += `data: ${JSON.stringify(ended)}\n\n${hasFailed(end) ? '' : 'data: [DONE]\n\n'}`;
    },
    failNative: (fault) => void (out += `data: ${JSON.stringify({ ...base, error: fault })}\n\n`),
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

const choiceOf = (text: string, finish: string | null) => ({ index: 0, text, logprobs: null, finish_reason: finish });

/** The usage, the task of an agent, and why a reply was cut. */
function moreOf({ usage, tollgate, fault }: ChatEnd) {
  const note = fault === null ? {} : { note: fault };
  const told = tollgate === undefined && fault === null ? {} : { tollgate: { ...(tollgate as object), ...note } };
  return { usage, ...told };
}
