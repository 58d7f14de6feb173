/**
 * Names that are acted on in one kind of object. `exact` are the spellings that are let through, `meant` the name
 * that each folded spelling stands for.
 */
interface ActedOn {
  readonly exact: ReadonlySet<string>;
  readonly meant: ReadonlyMap<string, string>;
  /** Letters and digits of the longest folded name. */
  readonly lettersMax: number;
  /** The names that begin with `tollgate/`. Where there are some, no other name may begin so. */
  readonly own: readonly string[];
}

/**
 * A member that is refused: some server takes it for another one, or it is said to the gateway, which has no such name.
 */
interface LookAlike {
  /** As it was sent. */
  readonly name: string;
  /**
   * The name that is probably meant. null for one that is too long to tell, and for an unknown name with the gateway's
   * own prefix.
   */
  readonly meant: string | null;
  readonly own?: readonly string[];
}

/**
 * No member that is acted on, or that a client has a reason to send beside it, has a longer name. Folding takes as
 * long as a name is.
 */
const NAME_CHARS_MAX = 256;

/**
 * `others`: spellings that fold to one of the names and are let through all the same, because the gateway reads
 * them itself.
 */
export function actedOn(names: readonly string[], others: readonly string[] = []): ActedOn {
  const meant = new Map(names.map((name) => [foldName(name, name.length), name]));
  for (const [folded, name] of meant) FOLDED.set(name, folded);
  return {
    exact: new Set([...names, ...others]),
    meant,
    lettersMax: Math.max(...[...meant.keys()].map(({ length }) => length)),
    own: names.filter((name) => name.startsWith(OWN)),
  };
}

/** Prefix of the members that are for the gateway. */
const OWN = 'tollgate/';
const OWN_FOLDED = 'tollgate';
/** All signs that look like the one in it. */
const SLASH = /[/\\\u2044\u2215\u29f8\uff0f]/;

const beginsAsOwn = (name: string): boolean =>
  SLASH.test(name) && foldName(name.slice(0, 64).split(SLASH, 1)[0]!) === OWN_FOLDED;

/**
 * The first of `names` that some decoder takes for a name that is acted on, or that has the gateway's prefix and is
 * unknown; null without one. Servers in Go match names without regard to case, ſ and the Kelvin sign included, and
 * some without regard to `_` and `-`. ProtoJSON and Pydantic have two spellings for each name. One parser in Go
 * ignored U+0000 behind a name, and in C a name ends there.
 */
export function findLookAlike(names: Iterable<string>, { exact, meant, lettersMax, own }: ActedOn): LookAlike | null {
  for (const name of names) {
    if (exact.has(name)) continue;
    if (name.length > NAME_CHARS_MAX) return { name, meant: null };
    const nul = name.indexOf('\0');
    const found =
      meant.get(foldName(name, lettersMax)) ??
      (nul === -1 ? undefined : meant.get(foldName(name.slice(0, nul), lettersMax)));
    if (found !== undefined) return { name, meant: found };
    // A cap that is misspelt must not be a cap that is not there.
    if (own.length > 0 && beginsAsOwn(name)) return { name, meant: null, own };
  }
  return null;
}

/** The fault of a request that has a look-alike. */
export interface LookAlikeFault {
  readonly message: string;
  /** Path of the member that seems to be meant, or of the object where none is. */
  readonly param: string;
}

/** `path` is that of the object, with what separates it from its members: `message.`. */
export function lookAlikeFault(path: string, { name, meant, own }: LookAlike): LookAlikeFault {
  const param = path.replace(/\.$/, '');
  if (meant === null && own === undefined)
    return {
      message: `${path}${shown(name)} is longer than ${NAME_CHARS_MAX} characters, which no name of a member may be`,
      param,
    };
  if (meant === null)
    return { message: `${path}${shown(name)} is not known; what begins with ${OWN} can be ${own!.join(', ')}`, param };
  const message = `${path}${shown(name)} must be written ${meant}: some servers would take the one for the other`;
  return { message, param: `${path}${meant}` };
}

/**
 * Objects inside another one by their path, with the names that are acted on in each. `*` is every element of an
 * array.
 */
export type ActedOnAt = readonly (readonly [path: readonly string[], names: ActedOn])[];

/** The first look-alike in the objects at the paths of `at`; null without one. `path` is that of `object` itself. */
export function lookAlikeAt(object: object, at: ActedOnAt, path = ''): LookAlikeFault | null {
  const found = search(object, treeOf(at));
  return found && lookAlikeFault(path + found.path, found);
}

/** The paths as a tree, so that what several begin with is gone along once. */
interface Place {
  names: ActedOn | null;
  readonly below: Map<string, Place>;
  /** Every element of an array. */
  each: Place | null;
}

const TREES = new WeakMap<ActedOnAt, Place>();
const place = (): Place => ({ names: null, below: new Map(), each: null });

function treeOf(at: ActedOnAt): Place {
  let root = TREES.get(at);
  if (root) return root;
  TREES.set(at, (root = place()));
  for (const [path, names] of at) {
    let here = root;
    for (const name of path)
      here = name === '*' ? (here.each ??= place()) : here.below.getOrInsertComputed(name, place);
    here.names = names;
  }
  return root;
}

/**
 * A look-alike with the path to its object, which is put together only once there is one: nearly all requests have
 * none.
 */
type Found = LookAlike & { readonly path: string };

function search(value: unknown, at: Place): Found | null {
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) return at.each && searchEach(value, at.each);
  const found = at.names && lookAlikeIn(value, at.names);
  if (found !== null) return found;
  for (const [name, below] of at.below) {
    const inside = search((value as Readonly<Record<string, unknown>>)[name], below);
    if (inside !== null) return { ...inside, path: `${name}${inside.path.startsWith('[') ? '' : '.'}${inside.path}` };
  }
  return null;
}

function searchEach(values: readonly unknown[], at: Place): Found | null {
  for (let i = 0; i < values.length; i++) {
    const found = search(values[i], at);
    if (found !== null) return { ...found, path: `[${i}]${found.path.startsWith('[') ? '' : '.'}${found.path}` };
  }
  return null;
}

function lookAlikeIn(object: object, names: ActedOn): Found | null {
  for (const name in object) {
    if (names.exact.has(name)) continue;
    const found = findLookAlike(Object.keys(object), names);
    return found && { ...found, path: '' };
  }
  return null;
}

/** A longer name is nobody's. */
const FOLDED_CHARS_MAX = 1_024;

/** Of names that are acted on: nearly all that requests have. */
const FOLDED = new Map<string, string>();

/** Characters that no decoder tells names apart by: signs, spaces, marks, controls, and invisible ones. */
const NO_LETTERS = /[^\p{L}\p{N}]+|\p{Default_Ignorable_Code_Point}+/gu;
const ASCII = /^[\0-\x7f]*$/;

/**
 * The form that all spellings of one name share: small letters and digits. Empty for a name with more than
 * `lettersMax` of them.
 */
export function foldName(name: string, lettersMax = 64): string {
  const known = FOLDED.get(name);
  if (known !== undefined) return known.length > lettersMax ? '' : known;
  if (name.length > FOLDED_CHARS_MAX) return '';
  // NFKC makes up to 18 characters of one, and is not asked of long texts.
  if (name.length > lettersMax && hasMoreLetters(name, lettersMax)) return '';
  // First up, then down: ſ is a small letter of its own, whose capital is S.
  const cased = ASCII.test(name) ? name : name.normalize('NFKC').toUpperCase();
  return cased.toLowerCase().replace(NO_LETTERS, '');
}

const LETTER = /(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{N}]/gu;

/** Whether there are more letters and digits in it, in UTF-16. Looks no further than that. */
function hasMoreLetters(name: string, max: number): boolean {
  let letters = 0;
  for (const [letter] of name.matchAll(LETTER)) if ((letters += letter.length) > max) return true;
  return false;
}

const SHOWN_MAX = 100;

/** With everything escaped that does not look as it is. */
function shown(name: string): string {
  return JSON.stringify(name.slice(0, SHOWN_MAX)).replace(
    /[^ -~]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
