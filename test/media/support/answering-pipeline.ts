import type { Pipeline, Send } from '#call';

/** The part of a pipeline that asks a provider: each request gets the answer for its path. */
export function answeringPipeline(
  answer: (path: string) => {
    readonly status?: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body: string | Buffer;
  },
): Pick<Pipeline, 'prepare' | 'run'> {
  const send: Send = ({ path }) => {
    const { status = 200, headers = {}, body } = answer(path);
    const chunks = [typeof body === 'string' ? Buffer.from(body) : body];
    const reply = {
      status,
      headers,
      scrub: (text: string) => text,
      ended: false,
      read: () => (chunks.length > 0 ? chunks.splice(0) : null),
      discard() {},
    };
    return { head: Promise.resolve(reply), abort() {}, over() {} };
  };
  const pipeline = {
    prepare: async (request: unknown) => request,
    async *run({ adapter }: { adapter: { startAttempt(offer: null, send: Send): AsyncGenerator } }) {
      const { value } = await adapter.startAttempt(null, send).next();
      yield { type: 'settled', ...(value as object) };
    },
  };
  return pipeline as never;
}
