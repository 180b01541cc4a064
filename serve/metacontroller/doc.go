// Package metacontroller serves the CompositeController and DecoratorController resources
// of Metacontroller (metacontroller.k8s.io/v1alpha1) and calls their webhooks.
//
// Pure functions make the decisions: [Merge] merges a child with its desired form, [Claim]
// decides about adoption and release, [Key] names objects in requests, [Rule] selects
// related objects, and [Roll] decides how far a rolling update goes. [Declare] adds the
// controllers to an operator.
package metacontroller
