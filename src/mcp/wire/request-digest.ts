import { hash } from 'node:crypto';
import { membersOf, type RequestMessage } from '#wire';

/**
 * What makes two requests the same: the tool and its arguments as they are written. Ids and tokens differ.
 * `answers`: and what the client answers to a round.
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
