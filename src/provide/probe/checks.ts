import type { ServiceConfig } from '#config';
import type { ProviderConfig } from '../provider-file.ts';
import type { Wallet } from '../wallet/wallet.ts';
import { agentCheck } from './agent.ts';
import { runCheck, type Check, type CheckResult } from './check.ts';
import { mediaChecks } from './media.ts';
import { modelChecks } from './model.ts';
import { routerChecks } from './router.ts';
import { toolCheck, type CommandRun } from './tool.ts';

export type { Check, CheckResult, CommandRun };

/** Lists all checks for a provider's file, in the order of the file. */
export function providerChecks(
  config: ProviderConfig,
  wallet: Wallet | null,
  run: CommandRun,
  now: () => number,
): readonly Check[] {
  return [...routerChecks(config.router, wallet, now), ...config.services.flatMap((each) => serviceChecks(each, run))];
}

/** Lists the checks of one service of a provider's or a gateway's file. */
export function serviceChecks({ service, target }: ServiceConfig, run: CommandRun): readonly Check[] {
  if (service.primitive === 'tool') return [toolCheck(service, target, run)];
  // Only tools can be commands.
  if (target.kind !== 'http') return [];
  switch (service.primitive) {
    case 'model':
      return modelChecks(service, target);
    case 'agent':
      return [agentCheck(service, target)];
    case 'image':
    case 'video':
      return mediaChecks(service, target);
  }
}

/**
 * Number of checks that run at once. One slow upstream doesn't delay the others, and a small upstream isn't overloaded.
 */
const AT_ONCE = 4;

/**
 * Runs all checks. Calls `report` with each result, in the order of the checks. Resolves with whether all of them
 * succeeded.
 */
export async function runChecks(
  checks: readonly Check[],
  now: () => number,
  report: (check: Check, result: CheckResult) => void,
): Promise<boolean> {
  const results: Promise<CheckResult>[] = [];
  let ok = true;
  for (const [index, check] of checks.entries()) {
    for (let next = results.length; next < Math.min(index + AT_ONCE, checks.length); next++)
      results.push(runCheck(checks[next]!, now));
    const result = await results[index]!;
    ok &&= result.ok;
    report(check, result);
  }
  return ok;
}
