import { elementsOf, isObject, membersOf, type ResponseMessage } from '#wire';

/**
 * The code of a legacy server's error that wants the user to open URLs before the request is repeated. The modern
 * revision does not have it.
 */
export const URL_ELICITATION_REQUIRED = -32_042;

/** The URLs of such an error as `inputRequests` (JSON text); null for any other response. */
export function urlInputRequests({ text, members, error }: ResponseMessage): string | null {
  if (error?.code !== URL_ELICITATION_REQUIRED) return null;
  const elicitations = isObject(error.data) ? error.data['elicitations'] : null;
  if (!Array.isArray(elicitations) || elicitations.length === 0) return null;
  if (!elicitations.every((one) => isObject(one) && one['mode'] === 'url')) return null;
  const data = membersOf(text, members.get('error')!.start).get('data')!;
  const spans = elementsOf(text, membersOf(text, data.start).get('elicitations')!.start);
  const requests = spans.map(
    ({ start, end }, index) =>
      `"input-${index + 1}":{"method":"elicitation/create","params":${text.slice(start, end)}}`,
  );
  return `{${requests.join(',')}}`;
}
