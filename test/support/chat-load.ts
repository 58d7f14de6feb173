import { events } from './spine.ts';

/** The result of one call, as its consumer saw it. */
export interface CallOutcome {
  /** The request id of the call. */
  readonly id: string;
  readonly model: string;
  readonly stream: boolean;
  readonly startedAt: number;
  readonly endedAt: number;
  /**
   * `complete`: the whole reply arrived. `broken`: a reply began, but ended with an error frame or was cut. `refused`:
   * an error status. `lost`: no reply at all.
   */
  readonly end: 'complete' | 'broken' | 'refused' | 'lost';
  readonly status: number | null;
  /** Whether text of the model has arrived. */
  readonly begun: boolean;
  /** The cost of a complete reply in USD. */
  readonly cost: number | null;
  readonly detail: string;
}

export interface ChatLoadOptions {
  readonly url: () => string;
  readonly key: string;
  readonly clients: number;
  /** Longest pause of a client between two calls, in milliseconds. */
  readonly pauseMs: number;
  readonly prefix: string;
  readonly random: () => number;
  /** Returns the model to call and the message. */
  readonly next: () => {
    readonly model: string;
    readonly stream: boolean;
    readonly content: string;
    readonly maxTokens: number;
  };
}

export interface ChatLoad {
  readonly outcomes: readonly CallOutcome[];
  running(): number;
  /** Stops after the running calls have ended. */
  stop(): Promise<void>;
}

/** Makes calls all the time, whatever their results are. */
export function startChatLoad(options: ChatLoadOptions): ChatLoad {
  const { random, pauseMs, clients, prefix } = options;
  const outcomes: CallOutcome[] = [];
  let count = 0;
  let running = 0;
  let stopping = false;

  const call = async (): Promise<void> => {
    const { model, stream, content, maxTokens } = options.next();
    const id = `${prefix}-${count++}`;
    const startedAt = Date.now();
    const end = (outcome: Pick<CallOutcome, 'end' | 'status' | 'begun' | 'cost' | 'detail'>) =>
      void outcomes.push({ id, model, stream, startedAt, endedAt: Date.now(), ...outcome });
    let response: Response;
    try {
      response = await fetch(`${options.url()}/api/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${options.key}`, 'content-type': 'application/json', 'x-request-id': id },
        body: JSON.stringify({ model, stream, max_tokens: maxTokens, messages: [{ role: 'user', content }] }),
      });
    } catch (error) {
      return end({ end: 'lost', status: null, begun: false, cost: null, detail: causeOf(error) });
    }
    let text = '';
    try {
      const decoder = new TextDecoder();
      for await (const chunk of response.body!) text += decoder.decode(chunk as Uint8Array, { stream: true });
    } catch (error) {
      return end({
        end: response.status === 200 ? 'broken' : 'lost',
        status: response.status,
        begun: text.length > 0,
        cost: null,
        detail: causeOf(error),
      });
    }
    const { status } = response;
    if (status !== 200) return end({ end: 'refused', status, begun: false, cost: null, detail: text });
    const begun = text.includes('"content":"');
    if (!stream)
      return end({
        end: 'complete',
        status,
        begun,
        cost: (JSON.parse(text) as { usage: { cost: number } }).usage.cost,
        detail: '',
      });
    const all = events(text) as { usage?: { cost: number } }[];
    const whole = text.endsWith('data: [DONE]\n\n');
    end({
      end: whole ? 'complete' : 'broken',
      status,
      begun,
      cost: whole ? all.at(-2)!.usage!.cost : null,
      detail: whole ? '' : text.slice(-400),
    });
  };
  const client = async (): Promise<void> => {
    while (!stopping) {
      await new Promise((resolve) => setTimeout(resolve, random() * pauseMs));
      running += 1;
      await call();
      running -= 1;
    }
  };
  const all = Promise.all(Array.from({ length: clients }, client));
  return {
    outcomes,
    running: () => running,
    async stop() {
      stopping = true;
      await all;
    },
  };
}

const causeOf = (error: unknown) => {
  const cause = (error as { cause?: { code?: string; message?: string } }).cause;
  return cause?.code ?? cause?.message ?? String(error);
};
