import type { FastifyInstance } from 'fastify';
import { administratorOf } from '#auth/keys';
import { GatewayError } from '#errors';
import type { Ledger, LockRecord } from '#billing';
import { ADMINISTRATION, dataOf, objectOf } from '../route-schemas.ts';
import { generationSchema, viewTree } from './call-tree.ts';

/** The answers of all gateways of a database to the wish to end a call. */
interface EndedCall {
  readonly ended: boolean;
  readonly silent: readonly string[];
}

export interface EndCallDeps {
  readonly ledger: Pick<Ledger, 'find' | 'children'>;
  readonly networks: readonly string[];
  /** null: no gateway runs here. */
  readonly endCall:
    | ((call: { readonly id: string; readonly by: string; readonly reason: string | null }) => Promise<EndedCall>)
    | null;
}

/** Longest wait for the end of the lock, and how often it is looked at: another gateway may write it. */
const WAIT_MS = 5_000;
const LOOK_MS = 20;

export function addEndCallRoute(app: FastifyInstance, { ledger, networks, endCall }: EndCallDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'End a running call',
    operationId: 'endCallOfAnAccount',
    description:
      'Ends a call of any account, with the calls that run under it, at whichever gateway of the database it runs. Its client gets the error `call_ended`. A task, a video or a batch that the call has begun is cancelled at its provider, and its client reads the reason where it asks for it. It costs nothing, also what was delivered of it; calls under it that had ended before, such as lines of a batch, stay charged. The answer is the call, as `GET /calls/{id}` shows it. A call that has ended is refused with 422.',
    params: objectOf({ id: { type: 'string', maxLength: 128, description: 'Id of the call.' } }),
    body: {
      title: 'EndCall',
      type: ['object', 'null'],
      additionalProperties: false,
      examples: [{ reason: 'it hung' }],
      properties: {
        reason: {
          type: 'string',
          minLength: 1,
          maxLength: 200,
          pattern: '\\S',
          description: 'Why. The client of the call reads it, also in its task, video or batch.',
        },
      },
    },
    response: { 200: dataOf(generationSchema) },
  };
  app.post<{ Params: { readonly id: string }; Body: { readonly reason?: string } | null | undefined }>(
    '/calls/:id/end',
    { schema, config: { adminRole: 'configure' } },
    async ({ params: { id }, body, raw }) => {
      if (endCall === null)
        throw new GatewayError('unprocessable', 'No gateway runs on this database, so no call does');
      const lock = await ledger.find(id);
      if (lock !== null && lock.state !== 'held')
        throw new GatewayError('unprocessable', 'The call has ended already', { param: 'id' });
      const reason = body?.reason?.trim() ?? null;
      const { ended, silent } = await endCall({ id, by: administratorOf(raw)?.id ?? '', reason });
      if (!ended) throw notRunning(lock, silent);
      const record = await untilOver(ledger, id);
      if (record === null)
        throw new GatewayError('not_found', 'The call has ended. Nothing of it was billed, so it has no record');
      return { data: await viewTree(record, ledger, null, networks) };
    },
  );
}

/** A free call has no lock, so it may run although the ledger does not know it. */
function notRunning(record: LockRecord | null, silent: readonly string[]): GatewayError {
  if (silent.length > 0)
    return new GatewayError(
      'service_unavailable',
      `The call runs at none of the gateways that answered. These did not answer: ${silent.join(', ')}`,
    );
  if (record === null) return new GatewayError('not_found', 'There is no call with this id', { param: 'id' });
  return new GatewayError(
    'unprocessable',
    'No gateway is at work for this call, and no provider has a task of it: it has just ended, or its gateway has crashed, and its lock is given back when it expires',
    { param: 'id' },
  );
}

/** The record of a call once its lock has ended, or as it is after a while. A free call gets its lock at its end. */
async function untilOver(ledger: Pick<Ledger, 'find'>, id: string): Promise<LockRecord | null> {
  for (const until = performance.now() + WAIT_MS; ;) {
    const record = await ledger.find(id);
    if ((record !== null && record.state !== 'held') || performance.now() >= until) return record;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
