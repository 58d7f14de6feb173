import { createContext, useContext, type ReactNode } from 'react';
import { createPortal } from 'react-dom';

/** The place in the bar on top of the page where a panel puts its buttons. */
export const BarPlace = createContext<HTMLElement | null>(null);

/** Buttons of a panel, in the bar on top of the page. */
export function BarActions({ children }: { readonly children: ReactNode }): ReactNode {
  const place = useContext(BarPlace);
  return place === null ? null : createPortal(children, place);
}
