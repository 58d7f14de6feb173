/**
 * The names on which the gateway or a provider acts in one kind of object. `exact` has the accepted spellings.
 * `nameByFolding` maps each folded spelling to its name.
 */
interface InterpretedFields {
  readonly exact: ReadonlySet<string>;
  readonly nameByFolding: ReadonlyMap<string, string>;
  readonly lettersMax: number;
  /** The names that begin with `tollgate/`. If there are any, every other name with this prefix is refused. */
  readonly own: readonly string[];
}

/**
 * A member that is refused, because some server takes its name for another name, or because it has the gateway's prefix
 * and is unknown.
 */
interface AmbiguousKey {
  /** As it was sent. */
  readonly name: string;
  /** The name that is probably meant. null if the name is too long, or unknown with the gateway's prefix. */
  readonly likelyName: string | null;
  readonly own?: readonly string[];
}

/**
 * Longer names are refused, because the time to fold a name grows with its length. No known or useful member has a
 * longer name.
 */
const NAME_CHARS_MAX = 256;

/** `others`: spellings that fold to one of the names and are accepted anyway, because the gateway itself reads them. */
export function interpretedFields(names: readonly string[], others: readonly string[] = []): InterpretedFields {
  const own = names.filter((name) => name.startsWith(OWN));
  const known = own.length > 0 ? [...names, ...WRITTEN_NAMES] : names;
  const nameByFolding = new Map(known.map((name) => [foldName(name, name.length), name]));
  for (const [folded, name] of nameByFolding) FOLDED.set(name, folded);
  return {
    exact: new Set([...known, ...others]),
    nameByFolding,
    lettersMax: Math.max(...[...nameByFolding.keys()].map(({ length }) => length)),
    own,
  };
}

/** The prefix of members for the gateway. */
const OWN = 'tollgate/';

/**
 * Members that occur in lists and answers only. Some clients send what they were told back with their next request, so
 * a request may have these members. They have no effect there.
 */
export const WRITTEN_NAMES = [
  'tollgate/price',
  'tollgate/definition',
  'tollgate/generation',
  'tollgate/receipt',
  'tollgate/finish',
  'tollgate/usage',
  'tollgate/cut',
] as const;
const OWN_FOLDED = 'tollgate';
/** All characters that look like the slash in the prefix. */
const SLASH = /[/\\\u2044\u2215\u29f8\uff0f]/;

/** Whether a reader could take the name for one with the gateway's prefix. */
export const beginsAsOwn = (name: string): boolean =>
  SLASH.test(name) && foldName(name.slice(0, 64).split(SLASH, 1)[0]!) === OWN_FOLDED;

/**
 * Finds the first of `names` that some decoder takes for one of the given names, or that has the gateway's prefix and
 * is unknown; null without such a name. Servers in Go ignore the case of names, including ſ and the Kelvin sign, and
 * some also ignore `_` and `-`. ProtoJSON and Pydantic have two spellings for each name. One parser in Go ignored
 * U+0000 after a name, and in C a name ends there.
 */
export function findAmbiguousKey(
  names: Iterable<string>,
  { exact, nameByFolding, lettersMax, own }: InterpretedFields,
): AmbiguousKey | null {
  for (const name of names) {
    if (exact.has(name)) continue;
    if (name.length > NAME_CHARS_MAX) return { name, likelyName: null };
    const nul = name.indexOf('\0');
    const match =
      nameByFolding.get(foldName(name, lettersMax)) ??
      (nul === -1 ? undefined : nameByFolding.get(foldName(name.slice(0, nul), lettersMax)));
    if (match !== undefined) return { name, likelyName: match };
    // Otherwise a misspelt cap would be ignored, and the call would have no cap.
    if (own.length > 0 && beginsAsOwn(name)) return { name, likelyName: null, own };
  }
  return null;
}

export interface AmbiguousKeyFault {
  readonly message: string;
  /** Path of the member that seems to be meant, or of the object if no member does. */
  readonly param: string;
}

/** `path` is the path of the object, with the separator to its members: `message.`. */
export function ambiguousKeyFault(path: string, { name, likelyName, own }: AmbiguousKey): AmbiguousKeyFault {
  const param = path.replace(/\.$/, '');
  if (likelyName === null && own === undefined)
    return {
      message: `${path}${quote(name)} is longer than ${NAME_CHARS_MAX} characters, which no name of a member may be`,
      param,
    };
  if (likelyName === null)
    return { message: `${path}${quote(name)} is not known; what begins with ${OWN} can be ${own!.join(', ')}`, param };
  const message = `${path}${quote(name)} must be written ${likelyName}: some servers would take the one for the other`;
  return { message, param: `${path}${likelyName}` };
}

/** Paths of nested objects, each with the names that have a meaning in it. `*` stands for every element of an array. */
export type InterpretedFieldsAt = readonly (readonly [path: readonly string[], names: InterpretedFields])[];

/**
 * The first ambiguous key in the objects at the paths of `at`; null without one. `path` is the path of `object`
 * itself.
 */
export function ambiguousKeyAt(object: object, at: InterpretedFieldsAt, path = ''): AmbiguousKeyFault | null {
  const key = search(object, treeOf(at));
  return key && ambiguousKeyFault(path + key.path, key);
}

/** The paths as a tree, so that a common beginning of several paths is walked once. */
interface PathNode {
  names: InterpretedFields | null;
  /** By their names. A list, because every request walks it, and a Map gives an array for each of its entries. */
  readonly below: { readonly name: string; readonly place: PathNode }[];
  /** The place below for all elements of an array. */
  each: PathNode | null;
}

const TREES = new WeakMap<InterpretedFieldsAt, PathNode>();
const newPlace = (): PathNode => ({ names: null, below: [], each: null });

function treeOf(at: InterpretedFieldsAt): PathNode {
  let root = TREES.get(at);
  if (root) return root;
  TREES.set(at, (root = newPlace()));
  for (const [path, names] of at) {
    let here = root;
    for (const name of path) here = name === '*' ? (here.each ??= newPlace()) : placeBelow(here, name);
    here.names = names;
  }
  return root;
}

function placeBelow({ below }: PathNode, name: string): PathNode {
  const known = below.find((each) => each.name === name);
  if (known !== undefined) return known.place;
  const place = newPlace();
  below.push({ name, place });
  return place;
}

/**
 * An ambiguous key with the path to its object. The path is built only after one is found, because nearly all
 * requests have no look-alike.
 */
type LocatedKey = AmbiguousKey & { readonly path: string };

function search(value: unknown, at: PathNode): LocatedKey | null {
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) return at.each && searchEach(value, at.each);
  const key = at.names && ambiguousKeyIn(value, at.names);
  if (key !== null) return key;
  for (const { name, place } of at.below) {
    const inside = search((value as Readonly<Record<string, unknown>>)[name], place);
    if (inside !== null) return { ...inside, path: `${name}${inside.path.startsWith('[') ? '' : '.'}${inside.path}` };
  }
  return null;
}

function searchEach(values: readonly unknown[], at: PathNode): LocatedKey | null {
  for (let i = 0; i < values.length; i++) {
    const key = search(values[i], at);
    if (key !== null) return { ...key, path: `[${i}]${key.path.startsWith('[') ? '' : '.'}${key.path}` };
  }
  return null;
}

function ambiguousKeyIn(object: object, names: InterpretedFields): LocatedKey | null {
  for (const name in object) {
    if (names.exact.has(name)) continue;
    const key = findAmbiguousKey(Object.keys(object), names);
    return key && { ...key, path: '' };
  }
  return null;
}

/** No known name is longer. */
const FOLDED_CHARS_MAX = 1_024;

/** Folded forms of the known names, which are nearly all names in requests. */
const FOLDED = new Map<string, string>();

/**
 * Characters by which decoders do not distinguish names: punctuation, spaces, marks, control characters and invisible
 * characters.
 */
const NO_LETTERS = /[^\p{L}\p{N}]+|\p{Default_Ignorable_Code_Point}+/gu;
const NO_ASCII_LETTERS = /[^a-z0-9]+/g;
const ASCII = /^[\0-\x7f]*$/;

/**
 * The common form of all spellings of a name: lower-case letters and digits. Empty for a name with more than
 * `lettersMax` of them.
 */
export function foldName(name: string, lettersMax = 64): string {
  const known = FOLDED.get(name);
  if (known !== undefined) return known.length > lettersMax ? '' : known;
  if (name.length > FOLDED_CHARS_MAX) return '';
  let folded = '';
  if (ASCII.test(name)) folded = name.toLowerCase().replace(NO_ASCII_LETTERS, '');
  // One by one, because the normalisation of a whole name can take a hundred times as long: it turns some characters
  // into 18, and sorts marks.
  else
    for (let at = 0; at < name.length; at++) {
      const code = name.codePointAt(at)!;
      if (code > 0xffff) at++;
      if (folds[code] === NOTHING) continue;
      folded += foldCharacter(code);
      if (folded.length > lettersMax) return '';
    }
  return folded.length > lettersMax ? '' : folded;
}

/** The fold of a character, for each code point: nothing, or itself. 0: a text in `OTHER_FOLDS`, or not known yet. */
const NOTHING = 1;
const ITSELF = 2;
/** The memory is reserved only, until names arrive that are not ASCII. */
const folds = new Uint8Array(0x11_0000);
/** Has an entry only for characters that Unicode maps to something else, which are some ten thousand. */
const OTHER_FOLDS = new Map<number, string>();
const MAY_FOLD = /[\p{L}\p{N}\p{Changes_When_NFKC_Casefolded}]/u;

/** Each character is normalised only once, because this takes up to a microsecond. */
function foldCharacter(code: number): string {
  const char = String.fromCodePoint(code);
  if (folds[code] === ITSELF) return char;
  const known = OTHER_FOLDS.get(code);
  if (known !== undefined) return known;
  // First upper case, then lower case, because ſ is a lower-case letter whose upper case is S.
  const folded = MAY_FOLD.test(char) ? char.normalize('NFKC').toUpperCase().toLowerCase().replace(NO_LETTERS, '') : '';
  if (folded === '') folds[code] = NOTHING;
  else if (folded === char) folds[code] = ITSELF;
  else OTHER_FOLDS.set(code, folded);
  return folded;
}

const SHOWN_MAX = 100;

/** The name as JSON, with all characters outside of printable ASCII escaped. */
function quote(name: string): string {
  return JSON.stringify(name.slice(0, SHOWN_MAX)).replace(
    /[^ -~]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
