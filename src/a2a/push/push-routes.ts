import type { FastifyPluginAsync } from 'fastify';
import { GatewayError, parseJson, type JsonLimits } from '#wire';
import { PARSED_JSON, readBytes } from '#gateway';
import type { TaskKey } from '#tasks';
import { keyOf } from '../tasks/agent-tasks.ts';
import { WRAPPERS, readEvent, type A2aEvent } from '../wire/events.ts';
import { ID_CHARS_MAX } from '../wire/read-send.ts';
import type { A2aVersion } from '../wire/protocol.ts';
import { PUSH_PATH, type OwnAddress, type OwnAddresses } from './own-address.ts';

/** A notification of an agent about one of its tasks. */
interface PushedEvent {
  readonly key: TaskKey;
  readonly address: OwnAddress;
  readonly version: A2aVersion;
  readonly event: A2aEvent;
  /** The body of the notification, unchanged. */
  readonly value: unknown;
}

export interface PushRoutesOptions {
  readonly addresses: Pick<OwnAddresses, 'open'>;
  readonly limits: JsonLimits;
  /** Resolves with false if the owner of the address has no such task. */
  readonly onEvent: (pushed: PushedEvent) => Promise<boolean>;
}

const BODY_BYTES_MAX = 1024 * 1024;
/** How many notifications of one offer are handled at the same time. */
const AT_ONCE_MAX = 32;
/** The body of a request without one, which the parser does not get. */
const EMPTY = Buffer.alloc(0);

/**
 * `POST /a2a/~push/<sealed>`: agents notify the gateway of their tasks. The address is the credential, so any other
 * address is answered as unknown. Register the route at the root.
 */
export function pushRoutes({ addresses, limits, onEvent }: PushRoutesOptions): FastifyPluginAsync {
  const running = new Map<string, number>();

  return async (app) => {
    app.removeAllContentTypeParsers();
    // Agents send application/json, application/a2a+json, or no content type.
    app.addContentTypeParser('*', readBytes(PARSED_JSON));

    app.post<{ Params: { '*': string }; Body: Buffer | undefined }>(
      `${PUSH_PATH}*`,
      {
        bodyLimit: BODY_BYTES_MAX,
        schema: { hide: true },
        // Checked before the body is read, so that bodies of strangers are not read.
        onRequest: async (request) => {
          if (addresses.open(request.params['*']) === null) throw unknown();
        },
      },
      async (request, reply) => {
        const address = addresses.open(request.params['*']);
        if (address === null) throw unknown();
        const { offerId } = address;
        const atOnce = running.get(offerId) ?? 0;
        if (atOnce >= AT_ONCE_MAX)
          throw new GatewayError('rate_limit_exceeded', 'Too many notifications at once', { retryAfterS: 1 });
        running.set(offerId, atOnce + 1);
        try {
          const pushed = readPushed(address, parseJson(request.body ?? EMPTY, limits));
          if (!(await onEvent(pushed))) throw unknown();
        } finally {
          const left = running.get(offerId)! - 1;
          if (left === 0) running.delete(offerId);
          else running.set(offerId, left);
        }
        return reply.code(204).send();
      },
    );
  };
}

const unknown = () => new GatewayError('not_found', 'No such endpoint');

/**
 * Reads a notification of either version: 1.0 wraps the event, 0.3 sends the bare task. Throws GatewayError
 * `invalid_request` for any other body, and for another task.
 */
function readPushed(address: OwnAddress, value: unknown): PushedEvent {
  const version = versionOf(value);
  const event = readEvent(version, value);
  const taskId = event?.taskId ?? null;
  if (event === null || event.kind === 'message' || taskId === null || taskId.length > ID_CHARS_MAX)
    throw new GatewayError(
      'invalid_request',
      'The body must be a task or an update of one: a StreamResponse of A2A 1.0, or a Task of 0.3',
    );
  if (address.taskId !== null && address.taskId !== taskId)
    throw new GatewayError('invalid_request', 'This address receives the notifications of another task');
  return { key: keyOf(address.service, taskId), address, version, event, value };
}

function versionOf(value: unknown): A2aVersion {
  return typeof value === 'object' &&
    value !== null &&
    Object.values(WRAPPERS).some((name) => Object.hasOwn(value, name))
    ? '1.0'
    : '0.3';
}
