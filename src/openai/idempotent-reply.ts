import type { ReplySink } from '#wire';
import { idempotencyError, KEPT_BYTES_MAX, type Idempotency, type GivenReply } from '#gateway';

/**
 * Answers a request that carries an idempotency key: runs it the first time, repeats the kept reply after that. A
 * first run goes to its end even when its client leaves, so that the retry finds the reply. A run that fails is not
 * kept, as it is not charged. `run` resolves with whether anything was charged. Throws GatewayError
 * `idempotency_conflict`, and what `run` throws.
 */
export async function answerOnce(
  idempotency: Idempotency,
  use: Parameters<Idempotency['begin']>[0],
  client: ReplySink,
  run: (sink: ReplySink) => Promise<boolean>,
): Promise<void> {
  const beginning = await idempotency.begin(use);
  if (beginning.kind === 'replay') {
    client.head(beginning.status, { ...beginning.headers, 'idempotent-replayed': 'true' });
    client.end(beginning.body);
    return;
  }
  if (beginning.kind !== 'new') throw idempotencyError(beginning.kind);
  const recording = record(client);
  let charged: boolean;
  try {
    charged = await run(recording.sink);
  } catch (error) {
    await idempotency.abandon(use);
    throw error;
  }
  const reply = recording.reply();
  try {
    if (reply) await idempotency.finish(use, reply, charged);
    else await idempotency.abandon(use);
  } finally {
    recording.release();
  }
}

/**
 * A sink that keeps what is written through it and never reports its client gone. The last bytes reach the client
 * only on `release`: whoever has seen the end of a reply finds it kept.
 */
function record(client: ReplySink): { readonly sink: ReplySink; reply(): GivenReply | null; release(): void } {
  let head: { status: number; headers: Record<string, string> } | null = null;
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  let last: Uint8Array | null = null;
  let failed = false;
  const keep = (chunk: Uint8Array) => {
    bytes += chunk.byteLength;
    if (bytes <= KEPT_BYTES_MAX.charged) chunks.push(chunk);
    else chunks = [];
  };
  return {
    sink: {
      closed: false,
      head(status, headers) {
        head = {
          status,
          headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
        };
        if (!client.closed) client.head(status, headers);
      },
      flush() {
        if (!client.closed) client.flush();
      },
      write(chunk) {
        keep(chunk);
        return client.closed || client.write(chunk);
      },
      drained: () => client.drained(),
      end(chunk) {
        keep(chunk);
        last = chunk;
      },
      fail(chunk) {
        failed = true;
        last = chunk;
      },
    },
    reply() {
      if (head === null || last === null || failed) return null;
      return { ...head, body: bytes <= KEPT_BYTES_MAX.charged ? Buffer.concat(chunks) : null };
    },
    release() {
      if (last !== null && !client.closed) client.end(last);
    },
  };
}
