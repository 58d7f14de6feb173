import { hash } from 'node:crypto';
import { membersOf, type RequestMessage } from '#wire';

/**
 * The identity of a request: SHA-256, in hex, of `target`, the method, and the tool's name and arguments as they are
 * written, without ids and tokens. `answers`: include the client's answers to a round.
 */
export function requestDigest(target: string, message: RequestMessage, answers: boolean): string {
  const whole = message.members.get('params');
  const params = whole && membersOf(message.text, whole.start);
  const parts = (answers ? ['name', 'arguments', 'inputResponses'] : ['name', 'arguments']).map((key) => {
    const member = params?.get(key);
    return member ? message.text.slice(member.start, member.end) : null;
  });
  return hash('sha256', JSON.stringify([target, message.method, ...parts]));
}
