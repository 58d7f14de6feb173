import type { Checks } from '../bench.ts';
import { cardChecks } from './card.ts';
import { dataChecks } from './data.ts';
import { errorChecks } from './errors.ts';
import { gatewayChecks } from './gateway.ts';
import { listChecks } from './list.ts';
import { multiTurnChecks } from './multi-turn.ts';
import { pushChecks } from './push.ts';
import { restChecks } from './rest.ts';
import { sendChecks } from './send.ts';
import { streamChecks } from './stream.ts';
import { subscribeChecks } from './subscribe.ts';
import { taskChecks } from './tasks.ts';
import { versionChecks } from './versions.ts';

/** All checks, by the name of their file. */
export const CHECKS: Readonly<Record<string, Checks>> = {
  card: cardChecks,
  data: dataChecks,
  errors: errorChecks,
  gateway: gatewayChecks,
  list: listChecks,
  'multi-turn': multiTurnChecks,
  push: pushChecks,
  rest: restChecks,
  send: sendChecks,
  stream: streamChecks,
  subscribe: subscribeChecks,
  tasks: taskChecks,
  versions: versionChecks,
};
