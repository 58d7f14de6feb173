import type { FastifyPluginAsync } from 'fastify';
import type { AdminGate } from '#auth';
import { GatewayError } from '#errors';
import { ConfigError, type NamedDifferences } from '#config';
import type { RollUp } from '#analytics';
import { type ChainAudit, PaymentsSetupError } from '#payments/on-chains';
import { ADMINISTRATION, dataOf, objectOf } from '../route-schemas.ts';

interface AuditRoutesDeps {
  readonly gate: AdminGate;
  /**
   * Recomputes the books. Bigints of the report become numbers in the answer. `archives`: further folders in which
   * files of archives are looked for.
   */
  readonly audit: (archives: readonly string[]) => Promise<object>;
  readonly auditChains: () => Promise<ChainAudit>;
}

const auditSchema = objectOf(
  {
    ok: { type: 'boolean', description: 'Nothing differs.' },
    checks: {
      type: 'array',
      items: {
        type: 'object',
        required: ['name', 'ok', 'detail'],
        properties: { name: { type: 'string' }, ok: { type: 'boolean' }, detail: { type: 'string' } },
        additionalProperties: true,
      },
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

    app.get<{ Querystring: { readonly chain: boolean; readonly archives?: string } }>(
      '/audit',
      {
        schema: {
          summary: 'Audit the books',
          description:
            'Recomputes every balance from the journal and checks its hash chain. It reads the whole journal, which takes time on a large ledger.',
          ...ADMINISTRATION,
          querystring: {
            type: 'object',
            properties: {
              chain: {
                type: 'boolean',
                default: false,
                description: 'Also compares the books with what the treasuries hold on their chains.',
              },
              archives: {
                type: 'string',
                minLength: 1,
                maxLength: 4096,
                description: 'A folder on the machine of the gateway in which files of archives are looked for, too.',
              },
            },
          },
          response: { 200: { description: 'The findings.', ...dataOf(auditSchema) } },
        },
      },
      async (request, reply) => {
        const { archives } = request.query;
        const report = await audit(archives === undefined ? [] : [archives]);
        const data = request.query.chain ? { ...report, chains: await auditChains() } : report;
        const text = JSON.stringify({ data }, (_name, value: unknown) =>
          typeof value === 'bigint' ? Number(value) : value,
        );
        return reply.header('content-type', 'application/json; charset=utf-8').send(text);
      },
    );
  };
}

interface Reloaded {
  readonly services: NamedDifferences;
  readonly prices: readonly string[];
  readonly chains: readonly string[];
  readonly options: readonly string[];
  readonly restart: readonly string[];
}

interface ReloadRoutesDeps {
  readonly gate: AdminGate;
  /**
   * Reloads the configuration. Rejects with ConfigError if the file has problems. null if no file was given at the
   * start.
   */
  readonly reload: (() => Promise<Reloaded>) | null;
}

const names = (description: string) => ({ type: 'array', items: { type: 'string' }, description });

const reloadSchema = objectOf({
  services: objectOf({
    added: names('Such as `model acme/fast of Acme`.'),
    changed: names('Their new prices and addresses hold for calls that begin now.'),
    removed: names('Calls that run may end.'),
  }),
  prices: names('Changed prices, such as `model acme/fast of Acme: prompt 0.5 -> 5`, in the units of the file.'),
  chains: names('Chains that money goes over from now on.'),
  options: names('Options that have their new value now.'),
  restart: names('Options that differ from the file and keep their old value until the gateway is restarted.'),
});

/** The operator's route that reloads the configuration. Register it under `/admin/v1`. */
export function reloadRoutes({ gate, reload }: ReloadRoutesDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', gate);
    const schema = {
      summary: 'Reload the configuration',
      operationId: 'reloadConfiguration',
      description:
        'Reads the configuration file anew and takes its services, prices and rate limits. Calls that run end as they began. A file with problems is answered with 400 and all of them, and nothing changes.',
      ...ADMINISTRATION,
      response: { 200: dataOf(reloadSchema) },
    };
    app.post('/reload', { schema, config: { adminRole: 'configure' } }, async () => {
      if (reload === null)
        throw new GatewayError('invalid_request', 'A gateway for development cannot reload. Restart it');
      try {
        return { data: await reload() };
      } catch (error) {
        if (error instanceof ConfigError || error instanceof PaymentsSetupError)
          throw new GatewayError('invalid_request', error.message, { cause: error });
        throw error;
      }
    });
  };
}

interface AdminFiguresDeps {
  readonly gate: AdminGate;
  readonly rollUp: Pick<RollUp, 'rebuild'>;
}

/** The operator's routes for the figures of calls. Register it under `/admin/v1`. */
export function adminFiguresRoutes({ gate, rollUp }: AdminFiguresDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', gate);
    const answer = objectOf({
      running: { type: 'boolean', description: 'It goes on.' },
      as_of: { type: ['string', 'null'], description: 'null while it runs.' },
    });
    const schema = {
      summary: 'Make the figures anew',
      operationId: 'rebuildAnalytics',
      description:
        'Recomputes the figures from all calls of the journal while the gateway serves calls. The figures are incomplete until this is done.',
      ...ADMINISTRATION,
      response: { 202: { description: 'It has begun', ...dataOf(answer) } },
    };
    app.post('/analytics/rebuild', { schema, config: { adminRole: 'configure' } }, async (_request, reply) => {
      await rollUp.rebuild();
      return reply.code(202).send({ data: { running: true, as_of: null } });
    });
  };
}
