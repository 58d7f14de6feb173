import { createDatabaseCheck, healthRoutes } from '#observe';
import type { Phases } from './calls.ts';
import { isOff } from './foundation.ts';
import { mount } from './mount.ts';

/** Health, for load balancers and monitoring. */
export async function mountHealth({ foundation, observers, money, access, network }: Phases): Promise<void> {
  const { database, logger, clock, config } = foundation;
  const { ledger, chains } = money;
  const { drain, http } = access;
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
  const ready = async () => {
    if (drain.announced()) return { ready: false, checks: { gateway: 'is shutting down' } };
    const state = await checkDatabase();
    return { ready: state === 'ok', checks: { gateway: 'ok', database: state, ...ofClock(), ...treasuries() } };
  };
  await mount(http.server, { health: healthRoutes({ ready, flushMs: config.ledger.flush }) });
}
