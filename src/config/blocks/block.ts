import type { Primitive } from '../primitive.ts';
import type { OptionTable, ValuesOf } from '../option.ts';
import type { Table } from '../reading.ts';
import type { Service, Target } from '../config.ts';

/** Reports a problem of a block as a whole, at one of its keys. */
type Complain = (key: string, wrong: string, right: string) => void;

/** The file that contains a block. */
export interface Place {
  /**
   * Whether commands are allowed. A gateway reaches services only by address. A provider's proxy also runs commands.
   */
  readonly commands: boolean;
  /** The directory for relative paths in the file. */
  readonly directory: string;
}

/**
 * One kind of block. Its keys are in two tables. `offer` describes the service and its prices, and is also part of a
 * registration. `target` says where the service runs, and never leaves the machine that reads the file. The functions
 * get values that are valid by themselves, and complain about invalid combinations.
 */
export interface BlockKind {
  readonly primitive: Primitive;
  readonly offer: OptionTable;
  readonly target: OptionTable;
  toService(values: Readonly<Record<string, unknown>>, complain: Complain): Service;
  toTarget(values: Readonly<Record<string, unknown>>, complain: Complain, place: Place): Target;
  /** The inverse of toService: the `offer` part of a block for this service. Prices are decimal strings. */
  toBlock(service: Service): Table;
}

/**
 * Defines the kind of block for `S`. Its functions are typed by its tables. The types are erased only here, so that all
 * kinds fit into one list.
 */
export function defineBlock<S extends Service, O extends OptionTable, T extends OptionTable>(kind: {
  readonly primitive: S['primitive'];
  readonly offer: O;
  readonly target: T;
  toService(values: ValuesOf<O>, complain: Complain): Omit<S, keyof Common>;
  toTarget(values: ValuesOf<T>, complain: Complain, place: Place): Target;
  toBlock(service: S): Table;
}): BlockKind {
  return {
    primitive: kind.primitive,
    offer: kind.offer,
    target: kind.target,
    toService(values, complain) {
      const {
        name,
        display_name: displayName,
        provider_name: providerName,
        description,
      } = values as unknown as CommonValues;
      return {
        primitive: kind.primitive,
        name,
        displayName,
        providerName,
        description,
        ...kind.toService(values as ValuesOf<O>, complain),
      } as unknown as Service;
    },
    toTarget: (values, complain, place) => kind.toTarget(values as ValuesOf<T>, complain, place),
    toBlock: (service) => ({
      name: service.name,
      display_name: service.displayName,
      provider_name: service.providerName,
      ...(service.description === '' ? {} : { description: service.description }),
      ...kind.toBlock(service as S),
    }),
  };
}

type Common = Pick<Service, 'primitive' | 'name' | 'displayName' | 'providerName' | 'description'>;
interface CommonValues {
  readonly name: string;
  readonly display_name: string;
  readonly provider_name: string;
  readonly description: string;
}
