import {
  type Answer,
  createAnswer,
  errorText,
  GatewayError,
  type KeepAlive,
  type NotificationMessage,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
} from '#wire';
import { runBatch } from '../wire/batch.ts';
import { toMcpError, worthTelling } from '../wire/errors-mcp.ts';
import { ERROR, LEGACY_METHODS } from '../wire/revisions.ts';
import type { LegacyDoor } from './routes.ts';
import { BATCH_OUTSIDE, NO_SESSION } from '../turn/session.ts';
import type { Knock } from '../call/standalone.ts';
import type { McpTail } from '../turn/turn.ts';

/** Sessions of one kind, each used by way of a `Use`, which is left when its request or stream is over. */
export interface SessionKeeper<Use extends { leave(): void }> {
  open(service: string | null, message: RequestMessage, knock: Knock, answer: Answer): Promise<void>;
  /** null where this account has no such session. */
  enter(service: string | null, id: string, account: string): Promise<Use | null>;
  /** One request, of the table of legacy methods. Throws GatewayError. */
  request(use: Use, asked: RequestMessage, events: boolean, knock: Knock, answer: Answer): Promise<void>;
  /** A notification or a response: null where it was taken. Throws GatewayError. */
  tell(use: Use, message: NotificationMessage | ResponseMessage, knock: Knock): Promise<McpTail | null>;
  listen(use: Use, knock: Knock, answer: Answer): Promise<void>;
  /** False where `enter` would give null. */
  end(service: string | null, id: string, account: string): Promise<boolean>;
}

export interface LegacyDoorDeps {
  readonly keepAlive: KeepAlive;
  /** Told of what fails in a way that no wire has a word for. */
  readonly onError: (error: unknown) => void;
}

/** The HTTP side of sessions: single messages, batches, the stream, the end. */
export function createLegacyDoor<Use extends { leave(): void }>(
  keeper: SessionKeeper<Use>,
  { keepAlive, onError }: LegacyDoorDeps,
): LegacyDoor {
  async function message(use: Use, text: string, events: boolean, knock: Knock, answer: Answer): Promise<void> {
    const asked = parseMessage(text);
    if (!asked) throw new GatewayError('internal', 'Internal error');
    if (asked.kind === 'request') {
      if (LEGACY_METHODS[asked.method]) return keeper.request(use, asked, events, knock, answer);
      return answer.end(errorText(asked.idText, { code: ERROR.methodNotFound, message: 'Method not found' }), 200);
    }
    const refusal = await keeper.tell(use, asked, knock);
    if (refusal === null) answer.close();
    else answer.end(refusal.text, refusal.status);
  }

  /** One message of a batch: its response as text. */
  async function ofBatch(use: Use, text: string, knock: Knock): Promise<string | null> {
    let response: string | null = null;
    const keeping: Answer = {
      events: async () => {},
      end(answered) {
        response = answered;
      },
      close: () => {},
    };
    const asked = parseMessage(text);
    try {
      await message(use, text, false, knock, keeping);
    } catch (error) {
      if (asked?.kind === 'request') return toMcpError(error, asked.idText).text;
    }
    return asked?.kind === 'request' ? response : null;
  }

  /** Runs something in a session, if this is one of the account's. */
  async function inside(
    service: string | null,
    id: string | null,
    { caller }: Knock,
    answer: Answer,
    run: (use: Use) => Promise<void>,
  ): Promise<void> {
    if (id === null) return answer.end(BATCH_OUTSIDE.text, BATCH_OUTSIDE.status);
    const use = await keeper.enter(service, id, caller.account);
    if (use === null) return answer.end(NO_SESSION.text, NO_SESSION.status);
    try {
      await run(use);
    } finally {
      use.leave();
    }
  }

  /** Whatever goes wrong is the answer. */
  async function answered(idText: string, answer: Answer, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      const told = worthTelling(error);
      if (told !== null) onError(told);
      const { status, headers, text } = toMcpError(error, idText);
      answer.end(text, status, headers);
    }
  }

  return {
    async post(service, inbound, knock, answer) {
      const { kind } = inbound;
      const idText = kind !== 'batch' && inbound.message.kind === 'request' ? inbound.message.idText : 'null';
      await answered(idText, answer, async () => {
        if (kind === 'initialize') return keeper.open(service, inbound.message, knock, answer);
        await inside(service, inbound.session, knock, answer, async (use) => {
          if (kind === 'legacy') return message(use, inbound.message.text, inbound.acceptsEvents, knock, answer);
          const responses = await runBatch(inbound.texts, (text) => ofBatch(use, text, knock));
          if (responses === null) answer.close();
          else answer.end(responses, 200);
        });
      });
    },
    async listen(service, session, knock, sink) {
      const answer = createAnswer({ sink, events: true, keepAlive });
      await answered('null', answer, () =>
        inside(service, session, knock, answer, (use) => keeper.listen(use, knock, answer)),
      );
    },
    async end(service, session, { caller }) {
      if (!(await keeper.end(service, session, caller.account)))
        throw new GatewayError('not_found', 'Session not found');
    },
  };
}
