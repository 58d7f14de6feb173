type Headers = Readonly<Record<string, string | number>>;

const DROPPED = 'x-tollgate-dropped';
const NAMES_MAX = 32;
const NAME_MAX = 96;

/**
 * Makes the headers of a reply from those of the chat reply. It adds whether the reply was translated, and which
 * fields were dropped. `nameOf` gives the name that the client wrote for a field of the chat request.
 */
export function createTranslatedHeaders(
  nameOf: (chatField: string) => string,
): (chat: Headers, lost: readonly string[], isNative: boolean) => Headers {
  return (chat, lost, isNative) => {
    if (isNative) return { ...chat, 'x-tollgate-wire': 'native' };
    const { [DROPPED]: dropped, ...rest } = chat;
    const ofChat = typeof dropped === 'string' ? dropped.split(', ').map(nameOf) : [];
    const names = [...new Set([...lost.map(encoded), ...ofChat])];
    const shown = names.length > NAMES_MAX ? [...names.slice(0, NAMES_MAX), '...'] : names;
    return { ...rest, 'x-tollgate-wire': 'translated', ...(shown.length > 0 ? { [DROPPED]: shown.join(', ') } : {}) };
  };
}

const encoded = (name: string): string => encodeURIComponent(name.slice(0, NAME_MAX).toWellFormed());
