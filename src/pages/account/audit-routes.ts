import type { FastifyPluginAsync } from 'fastify';
import type { AdminGate } from '#auth';
import { dataOf, objectOf } from '../answer-schemas.ts';
import type { ChainAudit } from '../funds/chain-audit.ts';

interface AuditRoutesDeps {
  readonly gate: AdminGate;
  /**
   * Recomputes the books and compares them with the balances of the treasuries. Bigints of the report become numbers in
   * the answer.
   */
  readonly audit: () => Promise<object>;
  readonly auditChains: () => Promise<ChainAudit>;
}

const auditSchema = objectOf(
  {
    ok: { type: 'boolean', description: 'Nothing differs.' },
    checks: {
      type: 'array',
      items: { type: 'object', additionalProperties: true },
      description: 'What was recomputed, with the differences.',
    },
    totals: { type: 'object', additionalProperties: { type: 'integer' }, description: 'Micro-USD and counts.' },
    chains: {
      type: 'object',
      additionalProperties: true,
      description: 'With `chain`: the books compared with the treasuries.',
    },
  },
  ['chains'],
);

/** The operator's route for the audit. Register it under `/admin/v1`. */
export function auditRoutes({ gate, audit, auditChains }: AuditRoutesDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', gate);

    app.get<{ Querystring: { readonly chain: boolean } }>(
      '/audit',
      {
        schema: {
          summary: 'Audit the books',
          description:
            'Recomputes every balance from the journal and checks its hash chain. It reads the whole journal, which takes time on a large ledger.',
          tags: ['Administration'],
          security: [{ bearer: [] }],
          querystring: {
            type: 'object',
            properties: {
              chain: {
                type: 'boolean',
                default: false,
                description: 'Also compares the books with what the treasuries hold on their chains.',
              },
            },
          },
          response: { 200: { description: 'The findings.', ...dataOf(auditSchema) } },
        },
      },
      async (request, reply) => {
        const report = await audit();
        const data = request.query.chain ? { ...report, chains: await auditChains() } : report;
        const text = JSON.stringify({ data }, (_name, value: unknown) =>
          typeof value === 'bigint' ? Number(value) : value,
        );
        return reply.header('content-type', 'application/json; charset=utf-8').send(text);
      },
    );
  };
}
