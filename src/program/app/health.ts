import { createDatabaseCheck, healthRoutes, type Readiness } from '#observe';
import type { Phases } from './calls.ts';
import { isOff } from './foundation.ts';
import { mount } from './mount.ts';

/** Whether this gateway can take calls, part by part. */
export type CheckReady = () => Promise<Readiness>;

export function readiness({ foundation, observers, money, access, network }: Phases): CheckReady {
  const { database, logger, clock } = foundation;
  const { ledger, chains } = money;
  const { drain } = access;
  const checkDatabase = createDatabaseCheck({
    write: network.registry.renew,
    ledger: ledger.probe,
    onChange: (problem, error) => {
      if (problem === null) logger.info('the database can be written to again');
      else if (problem === 'database')
        logger.error({ err: error }, 'the database cannot be written to: calls are refused');
      else logger.error({ err: error }, 'the ledger takes no operations: calls are refused');
    },
  });
  observers.metrics.show({ databaseWorks: async () => (await checkDatabase()) === 'ok' });
  // A late comparison does not make the gateway unready, because the ledger records every debt.
  const treasuries = () => {
    if (chains.funds === null) return {};
    const late = chains.funds.chains.late();
    return {
      treasuries: late.length === 0 ? 'ok' : `were not compared with the books for too long: ${late.join(', ')}`,
    };
  };
  // Neither does a wrong clock of this machine, because the gateway goes by that of the database.
  const ofClock = () => {
    if (database.engine === 'sqlite') return {};
    const aheadMs = clock.aheadMs();
    const [seconds, where] = [Math.round(Math.abs(aheadMs) / 1_000), aheadMs > 0 ? 'ahead of' : 'behind'];
    return { clock: isOff(aheadMs) ? `is ${seconds} s ${where} that of the database` : 'ok' };
  };
  return async () => {
    if (drain.announced()) return { ready: false, checks: { gateway: 'is shutting down' } };
    const state = await checkDatabase();
    return { ready: state === 'ok', checks: { gateway: 'ok', database: state, ...ofClock(), ...treasuries() } };
  };
}

export async function mountHealth({ foundation, access }: Phases, ready: CheckReady): Promise<void> {
  await mount(access.http.server, { health: healthRoutes({ ready, flushMs: foundation.config.ledger.flush }) });
}
