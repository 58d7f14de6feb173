/** A spelling of a name that some decoder takes for the name. */
export interface Spelling {
  readonly how: string;
  readonly text: string;
}

const FULL_WIDTH = 0xfee0;
const fullWidth = (text: string) =>
  text.replace(/[!-~]/g, (char) => String.fromCharCode(char.charCodeAt(0) + FULL_WIDTH));
const title = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);
const toggled = (char: string) => (char === char.toUpperCase() ? char.toLowerCase() : char.toUpperCase());

/** The last letter in the other case. */
function lastToggled(name: string): string {
  const at = name.search(/[a-z][^a-z]*$/i);
  return name.slice(0, at) + toggled(name[at]!) + name.slice(at + 1);
}

/**
 * Spellings of a name, each with the decoder that takes it for the name: `encoding/json` of Go folds case, ſ and
 * the Kelvin sign included; its second version can pass over `_` and `-`; ProtoJSON and Pydantic know snake case
 * and camel case; the parser of the MCP SDK in Go, up to 1.4.0, passed over U+0000 at the end; what is written in C
 * ends a name there. The rest is what nobody should have to decide. The name itself is never among them.
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
