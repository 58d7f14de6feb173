import type { TunnelObserver } from '#network';
import type { Logger } from './logger.ts';
import type { Metrics } from './metrics.ts';

export function createTunnelObserver(logger: Logger, metrics: Pick<Metrics, 'tunnelEvent'>): TunnelObserver {
  const log = tellLog(logger);
  const counted = Object.entries(log).map(([event, tell]) => [
    event,
    (...args: readonly unknown[]) => {
      metrics.tunnelEvent(event);
      (tell as (...args: readonly unknown[]) => void)(...args);
    },
  ]);
  return Object.fromEntries(counted) as TunnelObserver;
}

function tellLog(logger: Logger): Required<TunnelObserver> {
  return {
    rejected: (error, address) =>
      logger.info({ address, code: error.code, reason: error.message }, 'a dial was refused'),
    connected: ({ provider, id }, address) =>
      logger.info({ provider, connection: id, address }, 'a provider connected'),
    registered: ({ provider, id }, { services, revision }) =>
      logger.info({ provider, connection: id, services, revision }, 'a provider registered'),
    refused: ({ provider, id }, reason, problems) =>
      logger.warn(
        { provider, connection: id, reason, problems: problems.slice(0, PROBLEMS_LOGGED) },
        'a registration was refused',
      ),
    replaced: ({ provider, id }) =>
      logger.info({ provider, connection: id }, 'a newer connection of the provider took over'),
    draining: ({ provider, id }) => logger.info({ provider, connection: id }, 'a provider takes no more calls'),
    onLeave: ({ provider, id }, reason) => logger.info({ provider, connection: id, reason }, 'a provider left'),
    failed: ({ provider, id }, error) =>
      logger.warn({ err: error, provider, connection: id }, 'a registration could not be stored'),
  };
}

/** Maximum number of logged problems of one registration. A registration can have a thousand. */
const PROBLEMS_LOGGED = 10;
