/** The `node_modules` with the packages of `test/packages`, in `.cache`. It may not be there yet. */
export declare const TEST_MODULES: string;

/**
 * Installs and links the packages, unless that is done already. `say` gets a line before a download. Throws an Error
 * with npm's output if it fails. Several processes may do this at once.
 */
export declare function installTestPackages(say: (line: string) => void): void;
