// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.37;

import {TestUsdc} from "./TestUsdc.sol";

/// A token that looks like USDC and does not do what it says.
contract HostileUsdc is TestUsdc {
    enum Mode {
        Honest,
        /// Authorizations are used up, nothing moves, nothing is said.
        MovesNothing,
        /// Nothing moves, but a Transfer says so.
        ClaimsTransfer,
        /// A tenth vanishes on the way; the Transfer tells the whole amount.
        HiddenFee,
        /// A tenth goes to a collector, and the Transfers say so, the fee first.
        ShownFee,
        /// `transfer` moves nothing and returns false.
        ReturnsFalse
    }

    address public constant COLLECTOR = address(0xfee);
    Mode public mode;

    constructor(string memory name_, string memory version_) TestUsdc(name_, version_, 6) {}

    function setMode(Mode mode_) external {
        mode = mode_;
    }

    function transfer(address to, uint256 value) external override returns (bool) {
        if (mode == Mode.ReturnsFalse) return false;
        _move(msg.sender, to, value);
        return true;
    }

    function _move(address from, address to, uint256 value) internal override {
        if (mode == Mode.MovesNothing) return;
        if (mode == Mode.ClaimsTransfer) {
            emit Transfer(from, to, value);
            return;
        }
        if (mode == Mode.ShownFee) {
            super._move(from, COLLECTOR, value / 10);
            super._move(from, to, value - value / 10);
            return;
        }
        super._move(from, to, value);
        if (mode == Mode.HiddenFee) {
            balanceOf[to] -= value / 10;
            totalSupply -= value / 10;
        }
    }
}
