import { createContext, useContext, type ReactNode } from 'react';
import { createPortal } from 'react-dom';

/** The element in the top bar into which a panel puts its buttons. */
export const BarPlace = createContext<HTMLElement | null>(null);

/** Buttons of a panel, shown in the top bar. */
export function BarActions({ children }: { readonly children: ReactNode }): ReactNode {
  const place = useContext(BarPlace);
  return place === null ? null : createPortal(children, place);
}
