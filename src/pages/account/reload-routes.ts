import type { FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#wire';
import { ConfigError, type NamedDifferences } from '#config';
import type { AdminGate } from '#auth';
import { dataOf, objectOf } from '../answer-schemas.ts';
import { PaymentsSetupError } from '../funds/payments-setup-error.ts';

interface Reloaded {
  readonly services: NamedDifferences;
  /** Networks whose chains are now open. */
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
      tags: ['Administration'],
      security: [{ bearer: [] }],
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
