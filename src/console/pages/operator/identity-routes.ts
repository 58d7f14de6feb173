import type { FastifyPluginAsync } from 'fastify';
import type { AdminGate } from '#auth';
import { ADMINISTRATION, dataOf, objectOf } from '../route-schemas.ts';

interface IdentityRoutesDeps {
  readonly gate: AdminGate;
  readonly report: () => Promise<SeedReport>;
}

/** Seeds by the ids of the keys that sign their receipts. Times are epoch milliseconds. */
interface SeedReport {
  readonly receiptKey: string;
  readonly since: number;
  readonly former: readonly { readonly receiptKey: string; readonly since: number; readonly until: number }[];
  readonly uses: readonly { readonly what: string; readonly count: number; readonly until: number | null }[];
}

const time = { type: 'string', format: 'date-time' };
const receiptKey = { type: 'string', description: 'Id of the key that signs receipts.' };

const identitySchema = objectOf({
  receipt_key: receiptKey,
  since: time,
  former: {
    type: 'array',
    description: 'The seeds of before, the first one first.',
    items: objectOf({ receipt_key: receiptKey, since: time, until: time }),
  },
  depends_on_former: {
    type: 'array',
    description: 'What only a seed of before can read. Receipts are not among it: they are checked by public keys.',
    items: objectOf({
      what: { type: 'string' },
      count: { type: 'integer' },
      until: { type: ['string', 'null'], description: 'When the last of it expires. null: it does not.' },
    }),
  },
});

const iso = (at: number): string => new Date(at).toISOString();

/** The operator's route for the seeds of the database. Register it under `/admin/v1`. */
export function identityRoutes({ gate, report }: IdentityRoutesDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', gate);
    const schema = {
      summary: 'Show the identity of the gateways',
      operationId: 'showIdentity',
      description: 'Which seed the database belongs to, which it had before, and what still depends on those.',
      ...ADMINISTRATION,
      response: { 200: dataOf(identitySchema) },
    };
    app.get('/identity', { schema }, async () => {
      const { receiptKey: id, since, former, uses } = await report();
      return {
        data: {
          receipt_key: id,
          since: iso(since),
          former: former.map((one) => ({ receipt_key: one.receiptKey, since: iso(one.since), until: iso(one.until) })),
          depends_on_former: uses.map((use) => ({ ...use, until: use.until === null ? null : iso(use.until) })),
        },
      };
    });
  };
}
