import type { FastifyInstance } from 'fastify';
import { DOCUMENTED } from '#http';
import { loadStatements, type Database } from '#store';
import { documentedDay } from '../day-range.ts';
import { ADMINISTRATION, dataOf, listOf, objectOf, titled } from '../route-schemas.ts';

/* Comparisons with vendors that the operator keeps: the last one of each, for the console and the metrics. */

interface ReconciliationResult {
  /** `openai`, or the name of a provider here. */
  readonly vendor: string;
  readonly first_day: string;
  readonly last_day: string;
  /** Shares from 0 to 1. */
  readonly bound: number;
  readonly difference: number;
  readonly beyond: boolean;
  readonly models: readonly object[];
  readonly reasons: readonly object[];
}

interface KeptResult {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly result: ReconciliationResult;
}

const SQL = loadStatements(import.meta.url, './sql/reconciliations.sql', ['putReconciliation', 'listReconciliations']);
const VENDORS_MAX = 100;

/** The last comparison with each vendor, the newest first. */
export async function listReconciliations({ query }: Pick<Database, 'query'>): Promise<readonly KeptResult[]> {
  const rows = await query(SQL.listReconciliations, [VENDORS_MAX]);
  return rows.map((row) => ({
    at: Number(row['at']),
    result: JSON.parse(row['result'] as string) as ReconciliationResult,
  }));
}

const share = { type: 'number', minimum: 0, maximum: 1 } as const;
const day = { type: 'string', maxLength: 10, pattern: '^\\d{4}-\\d\\d-\\d\\d$', [DOCUMENTED]: documentedDay } as const;
const count = { type: ['integer', 'null'] } as const;
const resultProperties = {
  vendor: { type: 'string', minLength: 1, maxLength: 64, description: 'A vendor, or the name of a provider here.' },
  first_day: day,
  last_day: day,
  bound: { ...share, description: 'The share of a figure by which it may differ.' },
  difference: { ...share, description: 'The largest share by which a model, or all of them, differ.' },
  beyond: { type: 'boolean', description: 'Whether it is more than the bound.' },
  models: {
    type: 'array',
    maxItems: 1_000,
    items: titled('ReconciledModel', {
      type: 'object',
      additionalProperties: false,
      required: ['model', 'difference', 'beyond'],
      properties: {
        model: { type: ['string', 'null'], maxLength: 256, description: 'null: all models.' },
        difference: share,
        beyond: { type: 'boolean' },
        requests: count,
        billed_requests: { ...count, description: 'null: the export does not say.' },
        cost_micro_usd: { ...count, description: 'By the cost of the offers; null if it is unknown.' },
        billed_micro_usd: count,
        charged_micro_usdc: count,
        margin_micro_usd: count,
      },
    }),
  },
  reasons: {
    type: 'array',
    maxItems: 100,
    items: {
      type: 'object',
      additionalProperties: false,
      required: ['kind', 'text'],
      properties: {
        kind: { type: 'string', maxLength: 32 },
        text: { type: 'string', maxLength: 4_000 },
      },
    },
  },
} as const;

const EXAMPLE: ReconciliationResult = {
  vendor: 'openai',
  first_day: '2026-11-01',
  last_day: '2026-11-30',
  bound: 0.01,
  difference: 0.004,
  beyond: false,
  models: [
    {
      model: 'gpt-5-mini',
      difference: 0.004,
      beyond: false,
      requests: 1_204,
      billed_requests: 1_206,
      cost_micro_usd: 812_400,
      billed_micro_usd: 815_650,
      charged_micro_usdc: 975_120,
      margin_micro_usd: 162_720,
    },
  ],
  reasons: [{ kind: 'failed_here', text: '2 requests failed here and were billed there.' }],
};

interface ResultsDeps {
  readonly database: Pick<Database, 'query'>;
  readonly now: () => number;
}

export function addResultRoutes(app: FastifyInstance, { database, now }: ResultsDeps): void {
  app.get(
    '/reconciliation/results',
    {
      schema: {
        ...ADMINISTRATION,
        summary: 'List comparisons with vendors',
        operationId: 'listReconciliations',
        description: 'The last kept comparison with each vendor, the newest first.',
        response: {
          200: listOf(
            titled('Reconciliation', objectOf({ at: { type: 'string', format: 'date-time' }, ...resultProperties })),
          ),
        },
      },
    },
    async () => ({
      data: (await listReconciliations(database)).map(({ at, result }) => ({
        at: new Date(at).toISOString(),
        ...result,
      })),
    }),
  );
  app.post<{ Body: ReconciliationResult }>(
    '/reconciliation/results',
    {
      config: { adminRole: 'configure' },
      schema: {
        ...ADMINISTRATION,
        summary: 'Keep a comparison with a vendor',
        operationId: 'keepReconciliation',
        description:
          'Keeps the result of `tollgate reconcile --keep` for the console and the metrics, instead of the one before. It books nothing.',
        body: {
          title: 'KeptReconciliation',
          type: 'object',
          additionalProperties: false,
          examples: [EXAMPLE],
          required: Object.keys(resultProperties),
          properties: resultProperties,
        },
        response: { 200: dataOf(titled('KeptVendor', objectOf({ vendor: { type: 'string' } }))) },
      },
    },
    async ({ body }) => {
      await database.query(SQL.putReconciliation, [body.vendor, now(), JSON.stringify(body)]);
      return { data: { vendor: body.vendor } };
    },
  );
}
