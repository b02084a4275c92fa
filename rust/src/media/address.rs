//! Which addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether packets to this address leave for the public internet. Addresses that stand for an IPv4 address (mapped,
/// NAT64, 6to4, Teredo) are not global, because the address inside may be any.
pub fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_global_v4(address),
        IpAddr::V6(address) => is_global_v6(address),
    }
}

// The special-purpose registries of IANA.

fn is_global_v4(address: Ipv4Addr) -> bool {
    let within = |network: [u8; 4], bits: u32| {
        address.to_bits() >> (32 - bits) == Ipv4Addr::from(network).to_bits() >> (32 - bits)
    };
    let special = [
        ([0, 0, 0, 0], 8),       // this network
        ([10, 0, 0, 0], 8),      // private
        ([100, 64, 0, 0], 10),   // carrier-grade NAT
        ([127, 0, 0, 0], 8),     // loopback
        ([169, 254, 0, 0], 16),  // link-local, with the metadata services of clouds
        ([172, 16, 0, 0], 12),   // private
        ([192, 0, 0, 0], 24),    // protocol assignments
        ([192, 0, 2, 0], 24),    // documentation
        ([192, 88, 99, 0], 24),  // 6to4 relays
        ([192, 168, 0, 0], 16),  // private
        ([198, 18, 0, 0], 15),   // benchmarks
        ([198, 51, 100, 0], 24), // documentation
        ([203, 0, 113, 0], 24),  // documentation
        ([224, 0, 0, 0], 4),     // multicast
        ([240, 0, 0, 0], 4),     // reserved, and broadcast
    ];
    !special.iter().any(|&(network, bits)| within(network, bits))
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    let within = |network: [u16; 2], bits: u32| {
        let start = (u32::from(network[0]) << 16) | u32::from(network[1]);
        (address.to_bits() >> 96) as u32 >> (32 - bits) == start >> (32 - bits)
    };
    // Everything else is reserved, or local to a machine, a link or a site.
    within([0x2000, 0], 3)
        && !within([0x2001, 0], 23) // protocol assignments, with Teredo
        && !within([0x2001, 0xdb8], 32) // documentation
        && !within([0x2002, 0], 16) // 6to4
        && !within([0x3fff, 0], 20) // documentation
}
