import type { LegacyDoor } from './legacy-door.ts';
import type { StandaloneDoor } from './routes.ts';
import type { RequestContext, StandaloneRun } from '../call/standalone.ts';
import type { Aggregate } from '../own/aggregate/aggregate.ts';
import type { createAggregateDoor } from '../own/aggregate/standalone-door.ts';
import type { Front } from '../own/front/create-front.ts';
import { isTaskMethod } from '../tasks/extension.ts';
import type { TaskAddress, TaskDoor } from '../tasks/task-door.ts';

export interface AddressedDoorsDeps {
  /** Agents and models. */
  readonly front: Front;
  /** All services at once. */
  readonly aggregate: {
    readonly names: Aggregate;
    readonly standalone: ReturnType<typeof createAggregateDoor>;
    readonly sessionDoor: LegacyDoor;
  };
  /** Single services. */
  readonly service: { readonly standalone: StandaloneRun; readonly sessionDoor: LegacyDoor };
  readonly taskDoor: TaskDoor;
  /** Rejects with GatewayError where no service has the name. */
  readonly knownAddress: (service: string) => Promise<void>;
}

/** The doors of all addresses: each request goes to the one for its address. */
export function createAddressedDoors({ front, aggregate, service, taskDoor, knownAddress }: AddressedDoorsDeps): {
  readonly standalone: StandaloneDoor;
  readonly legacy: LegacyDoor;
} {
  const addressOf = (name: string | null, { caller, selection }: RequestContext): TaskAddress => {
    if (name === null) return { ...aggregate.names, includes: aggregate.names.scope(caller, selection).includes };
    return { includes: (of) => name === of || name.endsWith(`:${of}`), toClient: (text) => text };
  };
  const doorOf = (name: string | null) => {
    if (name === null) return aggregate.sessionDoor;
    return front.has(name) ? front.sessionDoor : service.sessionDoor;
  };

  return {
    async standalone(name, request, context, answer) {
      if (isTaskMethod(request.message.method)) await taskDoor(addressOf(name, context), request, context, answer);
      else if (name === null) await aggregate.standalone(context.selection, request, context, answer);
      else if (front.has(name)) await front.standalone(name, request, context, answer);
      else {
        await knownAddress(name);
        await service.standalone(name, request, context, answer);
      }
    },
    legacy: {
      async post(name, inbound, context, answer) {
        if (name !== null && inbound.kind === 'initialize' && !front.has(name)) await knownAddress(name);
        await doorOf(name).post(name, inbound, context, answer);
      },
      listen: (name, ...request) => doorOf(name).listen(name, ...request),
      end: (name, ...request) => doorOf(name).end(name, ...request),
    },
  };
}
