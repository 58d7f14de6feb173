/** A spelling of a name that some decoder accepts as the name. */
export interface Spelling {
  readonly how: string;
  readonly text: string;
}

const FULL_WIDTH = 0xfee0;
const fullWidth = (text: string) =>
  text.replace(/[!-~]/g, (char) => String.fromCharCode(char.charCodeAt(0) + FULL_WIDTH));
const title = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);
const toggled = (char: string) => (char === char.toUpperCase() ? char.toLowerCase() : char.toUpperCase());

/** Changes the case of the last letter. */
function lastToggled(name: string): string {
  const at = name.search(/[a-z][^a-z]*$/i);
  return name.slice(0, at) + toggled(name[at]!) + name.slice(at + 1);
}

/**
 * Returns spellings of a name, each with the decoder that accepts it as the name. Go's `encoding/json` ignores case,
 * including ſ and the Kelvin sign. Its second version can ignore `_` and `-`. ProtoJSON and Pydantic accept snake case
 * and camel case. The parser of the Go MCP SDK up to 1.4.0 ignored U+0000 at the end, and C code ends a name there. The
 * other spellings are cases that no decoder should have to decide. The name itself is never included.
 */
export function spellingsOf(name: string): Spelling[] {
  const middle = Math.ceil(name.length / 2);
  const inner = (char: string) => name.slice(0, middle) + char + name.slice(middle);
  const all: Spelling[] = [
    { how: 'upper case', text: name.toUpperCase() },
    { how: 'lower case', text: name.toLowerCase() },
    { how: 'title case', text: title(name) },
    { how: 'one letter upper', text: lastToggled(name) },
    { how: 'long s', text: name.replace(/s/i, '\u017f') },
    { how: 'Kelvin sign', text: name.replace(/k/i, '\u212a') },
    { how: 'full width', text: fullWidth(name) },
    { how: 'snake case', text: name.replace(/[a-z][A-Z]/g, ([a, b]) => `${a}_${b!.toLowerCase()}`) },
    { how: 'camel case', text: name.replace(/_([a-z])/g, (_, char: string) => char.toUpperCase()) },
    { how: 'kebab case', text: name.replaceAll('_', '-') },
    { how: 'underscores', text: `_${inner('_')}_` },
    { how: 'U+0000 at the end', text: `${name}\0` },
    { how: 'more of U+0000', text: `${name}\0\0\0` },
    { how: 'U+0000 in the middle', text: inner('\0') },
    { how: 'U+0000 at the beginning', text: `\0${name}` },
    { how: 'U+0000 and more', text: `${name}\0${'x'.repeat(80)}` },
    { how: 'a space at the end', text: `${name} ` },
    { how: 'a zero width space', text: inner('\u200b') },
    { how: 'a soft hyphen', text: inner('\u00ad') },
    { how: 'a byte order mark', text: `\ufeff${name}` },
    { how: 'half of a character', text: inner('\ud83d') },
  ];
  const known = new Set([name]);
  return all.filter(({ text }) => !known.has(text) && known.add(text));
}
